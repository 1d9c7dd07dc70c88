"""What every other package uses: errors, checks of arguments, options, progress, and what the machine has."""

__version__ = "0.2.0"
