"""Packages that only some commands need."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from .load_app import CommandError


@contextmanager
def imports_of(command: str, extra: str) -> Iterator[None]:
    """Around the imports of a command. Names the extra to install if a package is missing."""
    try:
        yield
    except ModuleNotFoundError as missing:
        package = (missing.name or "").partition(".")[0]
        if package == "relet":
            raise
        raise CommandError(f"relet {command} needs {package}: pip install 'relet[{extra}]'") from None
