"""The command line: the verbs, each in a file of its own."""
