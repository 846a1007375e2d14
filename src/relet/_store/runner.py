"""Running a flow on any connection: the store's or the caller's, sync or async. Tests also run flows by hand.

The flow yields steps and receives rows. A database error is thrown into the flow, which may catch it. The flow is
closed however it ends. Notifications that it yielded are returned with its result: the caller sends them after the
commit.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

from .query import Flow, Notify, Query, Row

R = TypeVar("R")


class Connection(Protocol):
    """The methods of a connection that a flow needs."""

    def begin(self) -> float | None:
        """Start a transaction, unless one is open. Returns how many seconds the caller waited for it, if known."""

    def execute(self, query: Query) -> list[Row]:
        """Run one statement."""


class AsyncConnection(Protocol):
    """The methods of an async connection that a flow needs."""

    async def begin(self) -> None:
        """Start a transaction, unless one is open."""

    async def execute(self, query: Query) -> list[Row]:
        """Run one statement."""


def drive(flow: Flow[R], connection: Connection) -> tuple[R, list[Notify]]:
    """Run a flow to its end."""
    notifications: list[Notify] = []
    try:
        step = next(flow)
        while True:
            answer: list[Row] = []
            try:
                if isinstance(step, Query):
                    answer = connection.execute(step)
                elif isinstance(step, Notify):
                    if step not in notifications:
                        notifications.append(step)
                elif (waited := connection.begin()) is not None:
                    answer = [(waited,)]
            except Exception as error:
                step = flow.throw(error)
            else:
                step = flow.send(answer)
    except StopIteration as end:
        return end.value, notifications
    finally:
        flow.close()


async def adrive(flow: Flow[R], connection: AsyncConnection) -> tuple[R, list[Notify]]:
    """Run a flow to its end on an async connection."""
    notifications: list[Notify] = []
    try:
        step = next(flow)
        while True:
            answer: list[Row] = []
            try:
                if isinstance(step, Query):
                    answer = await connection.execute(step)
                elif isinstance(step, Notify):
                    if step not in notifications:
                        notifications.append(step)
                else:
                    await connection.begin()
            except Exception as error:
                step = flow.throw(error)
            else:
                step = flow.send(answer)
    except StopIteration as end:
        return end.value, notifications
    finally:
        flow.close()
