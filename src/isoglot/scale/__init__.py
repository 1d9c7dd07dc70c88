"""Encoding, mining and indexing in pieces, on this machine or on a Ray cluster.

A piece of work is the same function with the same arguments on every machine, so a cluster of processors of one kind
returns the same bits as one machine; vectors computed on accelerators are equal up to rounding. Read in this order:
`work.py` (pieces of work, here or there), `shards.py` (vectors in several files), `encoding.py`, `mining.py`,
`indexing.py`.
"""

from isoglot.scale.encoding import encode_shards
from isoglot.scale.indexing import index_shards, merge_shards
from isoglot.scale.mining import neighbours_shards
from isoglot.scale.shards import Shards, open_shards
from isoglot.scale.work import Cluster

__all__ = ["Cluster", "Shards", "encode_shards", "index_shards", "merge_shards", "neighbours_shards", "open_shards"]
