"""Sleeping until something happens: one listening thread for a place, any number of sleepers.

What is said is only "look again": nothing hangs on it, for every sleeper also polls. The thread starts with the first
sleeper and ends when there has been none for a while.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from typing import Protocol, TypeVar

from .._system import SYSTEM, Event
from .interrupts import has_begun, start

log = logging.getLogger("relet.store")

LINGER = 30  # seconds


class Listener(Protocol):
    """A connection of its own that hears what others have committed."""

    def wait(self, seconds: float, channels: frozenset[str]) -> set[str]:
        """Those of the channels on which something was heard within so many seconds; raises when the link is lost."""

    def close(self) -> None:
        """Stop listening."""


class Place(Protocol):
    """Where there is something to hear."""

    where: str

    def listen(self) -> Listener:
        """Begin to listen."""


def channel(kind: str, schema: str) -> str:
    """The name of a channel: at most 63 bytes, as a schema's name has at most 48."""
    return f"{schema}.{kind}"


class Subscription:
    """A thread that waits for notifications. It clears the event before it reads, so that none is missed after that."""

    def __init__(self, channels: frozenset[str], wake: Callable[[], None] | None = None) -> None:
        self.channels = channels
        self._event = SYSTEM.event()
        self._wake = wake or self._event.set

    def wait(self, seconds: float) -> bool:
        """Sleep until woken, or for so many seconds. True: woken."""
        return self._event.wait(seconds)

    def clear(self) -> None:
        """To be called before looking, so that what comes after the look is not missed."""
        self._event.clear()

    def wake(self) -> None:
        """Something happened on one of the channels."""
        self._wake()


class AsyncSubscription:
    """The same on an event loop."""

    def __init__(self, channels: frozenset[str]) -> None:
        import asyncio

        self.channels = channels
        self._loop = asyncio.get_running_loop()
        self._event = asyncio.Event()

    async def wait(self, seconds: float) -> None:
        """Sleep until woken, or for so many seconds."""
        import asyncio

        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._event.wait()

    def clear(self) -> None:
        """To be called before looking, so that what comes after the look is not missed."""
        self._event.clear()

    def wake(self) -> None:
        """Something happened on one of the channels."""
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(self._event.set)


AnySubscription = TypeVar("AnySubscription", Subscription, AsyncSubscription)


class Notifier:
    """The sleepers at one place, of all its schemas, and the thread that listens for them."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._reset()

    def of(self, schema: str) -> SchemaNotifier:
        """The sleepers of one schema."""
        return SchemaNotifier(self, schema)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._sleepers: list[Subscription | AsyncSubscription] = []
        self._thread: threading.Thread | None = None
        self._stop = SYSTEM.event()  # of the thread that listens now
        self._pid = os.getpid()

    def _notice_fork(self) -> None:
        """A fork takes neither the thread along, nor a lock that can be trusted."""
        if self._pid != os.getpid():
            self._reset()

    @contextmanager
    def listening(self, sleeper: AnySubscription) -> Iterator[AnySubscription]:
        """Somebody to be woken by their channels."""
        self._notice_fork()
        with self._lock:
            self._sleepers.append(sleeper)
            if not has_begun(self._thread):
                self._stop = SYSTEM.event()
                self._thread = SYSTEM.thread("listener", partial(self._listen, self._stop))
                start(self._thread)
        try:
            yield sleeper
        finally:
            with self._lock:
                self._sleepers.remove(sleeper)

    def publish(self, channels: set[str]) -> None:
        """Wake the sleepers of these channels in this process."""
        self._notice_fork()
        with self._lock:
            for sleeper in self._sleepers:
                if sleeper.channels & channels:
                    sleeper.wake()

    def close(self) -> None:
        """Stop listening, until somebody sleeps again."""
        self._notice_fork()
        with self._lock:
            self._stop.set()
            self._thread = None

    def _listen(self, stop: Event) -> None:
        """Listen. When the connection is lost, connect again and let everybody look: they may have missed something."""
        while not stop.is_set():
            try:
                self._listen_once(stop)
            except Exception as error:
                log.debug("listening to %s failed, again in a second: %s", self._place.where, error)
                stop.wait(1.0)

    def _listen_once(self, stop: Event) -> None:
        listener = self._place.listen()
        quiet = 0
        try:
            self.publish(set(self._wanted()))
            while not stop.is_set():
                heard = listener.wait(1.0, self._wanted())
                if heard:
                    self.publish(heard)
                quiet = 0 if self._sleepers else quiet + 1
                if quiet >= LINGER:
                    self._retire(stop)
        finally:
            listener.close()

    def _wanted(self) -> frozenset[str]:
        with self._lock:
            return frozenset[str]().union(*(sleeper.channels for sleeper in self._sleepers))

    def _retire(self, stop: Event) -> None:
        """Nobody has slept for a while: end this thread, unless somebody came just now."""
        with self._lock:
            if not self._sleepers:
                self._thread = None
                stop.set()


class SchemaNotifier:
    """The sleepers of one schema: `notifier.subscribe("jobs")`."""

    def __init__(self, notifier: Notifier, schema: str) -> None:
        self._notifier = notifier
        self._schema = schema

    def subscribe(self, *kinds: str, wake: Callable[[], None] | None = None) -> AbstractContextManager[Subscription]:
        """A subscription to these channels: queued, jobs, done, request. `wake` is called in place of its own event."""
        return self._notifier.listening(Subscription(self._channels(kinds), wake))

    def subscribe_async(self, *kinds: str) -> AbstractContextManager[AsyncSubscription]:
        """The same on the event loop that runs here."""
        return self._notifier.listening(AsyncSubscription(self._channels(kinds)))

    def _channels(self, kinds: tuple[str, ...]) -> frozenset[str]:
        return frozenset(channel(kind, self._schema) for kind in kinds)

    def publish(self, kinds: set[str]) -> None:
        """Wake the sleepers of this process."""
        self._notifier.publish({channel(kind, self._schema) for kind in kinds})

    def close(self) -> None:
        """Stop listening, until somebody sleeps again."""
        self._notifier.close()

    @property
    def asleep(self) -> int:
        """How many sleepers there are, in all schemas."""
        return len(self._notifier._sleepers)
