"""Whether a handler has completed its job in a transaction of its own.

    NONE          the worker settles the job when the handler ends
    UNCONFIRMED   a statement has completed the job in a transaction that is the handler's to commit

An unconfirmed completion may be open, committed or rolled back. The settler finds out. A job that is settled under its
lease was committed. A job that is still running and not locked was rolled back. A locked job is open: the settler asks
again later.
"""

from __future__ import annotations

from msgspec import Struct


class Completion(Struct, frozen=True):
    """`result`: JSON text, empty where the chain goes on with another job; None: not completed."""

    result: str | None = None

    @property
    def is_unconfirmed(self) -> bool:
        return self.result is not None


NONE = Completion()
