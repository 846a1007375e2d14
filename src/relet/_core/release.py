"""The version of the installed package."""

from functools import cache


@cache
def release() -> str:
    """Such as "0.1.0". Imported on first use: `importlib.metadata` takes longer to import than all of `core`."""
    from importlib.metadata import version

    return version("relet")
