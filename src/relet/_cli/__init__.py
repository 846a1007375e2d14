"""The command line. `relet --help` tells what there is."""

from .main import main

__all__ = ["main"]
