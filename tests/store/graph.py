"""Who waits for whom."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter


def circular(links: Mapping[str, Iterable[str]]) -> bool:
    """Whether some would wait for themselves, in however many steps."""
    try:
        TopologicalSorter(links).prepare()
    except CycleError:
        return True
    return False
