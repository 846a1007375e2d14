"""Thousands of collected cases, which every full run of the garbage collector would visit, are excluded from it.

A worker runs the collector when it starts, unless the program has frozen its heap. With ten thousand cases in memory
that takes a third of a second, longer than most tests of workers.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collection drops next to nothing, so the garbage collector would find nothing."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()


@pytest.fixture
def unfrozen_heap() -> Iterator[None]:
    gc.unfreeze()
    yield
    gc.freeze()
