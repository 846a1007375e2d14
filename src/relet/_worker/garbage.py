"""The garbage collector while a worker runs."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def frozen_heap() -> Iterator[None]:
    """Exclude the objects that exist now, such as modules, classes and functions, from garbage collection.

    A busy worker creates and drops thousands of objects a second, so the collector runs often, and each full collection
    would visit all of them. Does nothing if the program has called `gc.freeze()` itself.
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
