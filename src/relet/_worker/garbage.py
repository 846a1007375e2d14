"""The garbage collector while a worker runs."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def frozen_heap() -> Iterator[None]:
    """Leave what the program has made so far out of collections: modules, classes, functions.

    A busy worker makes and drops thousands of objects a second, so the collector runs often, and every full run would
    walk over all of that again. A program that has frozen its heap itself is left alone.
    """
    if gc.get_freeze_count():
        yield
        return
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
