"""Models for inference, without torch: tokenizers, static tables, graphs for ONNX Runtime, files of vectors.

`load` opens a model by name or folder and chooses its engine: a static table in NumPy, ONNX Runtime, or torch, whose
encoders (`isoglot.encoders`) are models too.
"""

from isoglot.model.base import Model, encode
from isoglot.model.loading import load
from isoglot.model.output import find_ranges, quantize_vectors
from isoglot.model.packaged import DEFAULT

__all__ = ["DEFAULT", "Model", "encode", "find_ranges", "load", "quantize_vectors"]
