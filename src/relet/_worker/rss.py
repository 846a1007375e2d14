"""The memory that this process uses."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path


def is_measured() -> bool:
    """Whether this system has a measure; Windows has none of the two that `resident_bytes` uses."""
    return find_spec("resource") is not None


def resident_bytes() -> int:
    """The resident set size; its maximum so far on systems without /proc, such as macOS."""
    import resource  # missing on Windows

    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
