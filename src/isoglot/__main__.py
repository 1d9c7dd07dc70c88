"""`python -m isoglot` is the command `isoglot`."""

from isoglot.cli.main import main

main()
