"""The protocols of evaluation, one file for each kind of task."""
