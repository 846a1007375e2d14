"""The command line. `leasehold --help` tells what there is."""

from .main import main

__all__ = ["main"]
