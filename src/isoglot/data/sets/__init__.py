"""Data sets by name: a catalogue with addresses, licences and checksums, downloading, and checking of local copies."""

from isoglot.data.sets.catalogue import DataSet, catalogue, command, find
from isoglot.data.sets.check import Finding, check, present
from isoglot.data.sets.download import Network
from isoglot.data.sets.get import get

__all__ = ["DataSet", "Finding", "Network", "catalogue", "check", "command", "find", "get", "present"]
