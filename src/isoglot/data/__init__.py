"""From data to batches: groups, readers, corpora, token tables."""

from isoglot.data.groups import Group, groups_of

__all__ = ["Group", "groups_of"]
