"""What an interrupt cannot tear apart.

An exception of a signal handler (Ctrl-C) is raised between two instructions of Python: also after a lock was acquired,
and before anything could note that it must be released. A call into C is not interrupted. So what is taken is noted in
the same call; what is given back is, too, or it is the first thing that a `finally` does: on the way there, and in
front of a call into C, Python does not look for signals. It does where a function written in Python begins: an
`__exit__` of that kind is never the only one to give something back. Who is outside of such a block leaves it again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from itertools import repeat
from operator import call
from typing import Any, TypeVar

T = TypeVar("T")


def take_into(held: list[T], take: Callable[[], T]) -> None:
    """Call, and append what is returned: whenever this is interrupted, what was taken is in the list."""
    held.extend(map(call, (take,)))


def handing(held: list[T], give: Callable[[T], object]) -> Iterator[object]:
    """`next` of this takes the last out of the list and hands it to a function written in C, in one call: it is never
    lost on the way, nor handed twice."""
    return map(give, map(held.pop, repeat(-1)))


def start(thread: threading.Thread) -> None:
    """Start a thread. Should an interrupt come as it begins, that is raised: Python itself raises KeyError then."""
    try:
        thread.start()
    except KeyError as error:
        raise (error.__context__ or error) from None


def has_begun(thread: threading.Thread | None) -> bool:
    """Whether there is a thread, and no interrupt has kept it from being started."""
    return thread is not None and thread.ident is not None


def leave(block: AbstractContextManager[Any]) -> None:
    """Leave the block of a generator's context manager, should an interrupt have kept its `__exit__` from doing so."""
    block.gen.close()  # type: ignore[attr-defined]
