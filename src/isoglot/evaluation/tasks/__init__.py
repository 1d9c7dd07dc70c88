"""The protocols, one file for each kind of task; what sets they read, and in which files, in the files next to them."""
