"""Encoders of torch, which can be trained: transformers, static tables, towers, and what changes their weights.

Importing this loads torch but not transformers, which takes seconds and is imported when a transformer is opened.
"""

from isoglot.core.errors import naming_extras

with naming_extras():
    from isoglot.encoders.averaging import average
    from isoglot.encoders.base import Encoder, to_tensor
    from isoglot.encoders.fitting import fit_flow, fit_whitening
    from isoglot.encoders.loading import load
    from isoglot.encoders.static import StaticEncoder
    from isoglot.encoders.transformer import TransformerEncoder
    from isoglot.encoders.vocabulary import trim

__all__ = [
    "Encoder",
    "StaticEncoder",
    "TransformerEncoder",
    "average",
    "fit_flow",
    "fit_whitening",
    "load",
    "to_tensor",
    "trim",
]
