"""Taking and giving back resources so that an interrupt cannot come between the two halves of a step.

A signal handler's exception (Ctrl-C) is raised between two Python instructions. That may be after a lock was acquired
and before any code could record that it must be released. A call into C is not interrupted. Hence three rules:

- One call into C both takes a resource and records it.
- A resource is given back by one call into C that also removes the record, or as the first thing in a `finally`:
  Python does not check for signals on the way into a `finally`, nor in front of a call into C.
- Python does check for signals where a function written in Python begins. So an `__exit__` written in Python is never
  the only code that gives a resource back: the code outside of such a block leaves it again, see `leave`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from itertools import repeat
from operator import call
from typing import Any, TypeVar

T = TypeVar("T")


def take_into(taken: list[T], take: Callable[[], T]) -> None:
    """Call `take` and append its result: whenever this is interrupted, a resource that was taken is in the list."""
    taken.extend(map(call, (take,)))


def mover(taken: list[T], receive: Callable[[T], object]) -> Iterator[object]:
    """An iterator whose `next` removes the last item of the list and passes it to `receive`, a function written in C.

    Both happen in one call into C, so an interrupt can neither lose the item on the way nor pass it on twice.
    """
    return map(receive, map(taken.pop, repeat(-1)))


def start(thread: threading.Thread) -> None:
    """Start a thread. If an interrupt arrives while it starts, raise that: Python itself raises KeyError instead."""
    try:
        thread.start()
    except KeyError as error:
        raise (error.__context__ or error) from None


def has_begun(thread: threading.Thread | None) -> bool:
    """False if there is no thread, or if an interrupt has kept it from being started."""
    return thread is not None and thread.ident is not None


def leave(block: AbstractContextManager[Any]) -> None:
    """Leave the block of a generator's context manager, in case an interrupt has kept its `__exit__` from doing so."""
    block.gen.close()  # type: ignore[attr-defined]
