"""Whether a handler has completed its job in its transaction.

    NOT_COMPLETED   the worker settles the job when the handler ends
    unconfirmed     the handler has completed the job by a statement in a transaction, which it commits itself

The transaction of an unconfirmed completion may be open, committed or rolled back. The settler finds out. If the job is
settled under its lease, the transaction was committed. If the row is still running and not locked, it was rolled back.
If the row is locked, the transaction is open, and the settler checks again later.
"""

from __future__ import annotations

from msgspec import Struct


class Completion(Struct, frozen=True):
    """`result`: JSON text; empty if the chain continues with another job; None if the job was not completed."""

    result: str | None = None

    @property
    def is_unconfirmed(self) -> bool:
        return self.result is not None


NOT_COMPLETED = Completion()
