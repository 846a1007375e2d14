"""The command line. `relet --help` lists the commands."""

from .main import main

__all__ = ["main"]
