"""Notifications: one listening thread for each database, any number of subscriptions.

A notification only says that a subscriber should read again. Correctness does not depend on it: every subscriber also
polls. The thread starts with the first subscription, and ends when there has been none for a while.
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

LINGER = 30  # seconds that the thread runs without a subscription


class Listener(Protocol):
    """A separate connection that receives the notifications of other processes."""

    def wait(self, seconds: float, channels: frozenset[str]) -> set[str]:
        """Wait up to this many seconds. Returns the channels that were notified; raises if the connection is lost."""

    def close(self) -> None:
        """Stop listening."""


class Source(Protocol):
    """A database that sends notifications."""

    where: str

    @property
    def sends_notifications(self) -> bool:
        """False: it is known that no notification would arrive."""

    def listen(self) -> Listener:
        """Open a connection that listens."""


def channel(kind: str, schema: str) -> str:
    """The name of a channel: at most 63 bytes, as a schema's name has at most 48, and a key 7 digits."""
    return f"{schema}.{kind}"


class Subscription:
    """A subscription of one thread.

    The thread calls `clear` before it reads, so that it does not miss a notification that arrives after the read.
    """

    def __init__(self, channels: frozenset[str], wake: Callable[[], None] | None = None) -> None:
        self.channels = channels
        self._event = SYSTEM.event()
        self._wake = wake or self._event.set

    def wait(self, seconds: float) -> bool:
        """Sleep until notified, or for this many seconds. True: notified."""
        return self._event.wait(seconds)

    def clear(self) -> None:
        """Forget earlier notifications. Call it before reading, so that a later one is not missed."""
        self._event.clear()

    def wake(self) -> None:
        self._wake()


class AsyncSubscription:
    """A subscription of one task on an event loop."""

    def __init__(self, channels: frozenset[str]) -> None:
        import asyncio

        self.channels = channels
        self._loop = asyncio.get_running_loop()
        self._event = asyncio.Event()

    async def wait(self, seconds: float) -> None:
        """Sleep until notified, or for this many seconds."""
        import asyncio

        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._event.wait()

    def clear(self) -> None:
        """Forget earlier notifications. Call it before reading, so that a later one is not missed."""
        self._event.clear()

    def wake(self) -> None:
        with suppress(RuntimeError):  # the loop is closed: no task waits any more
            self._loop.call_soon_threadsafe(self._event.set)


AnySubscription = TypeVar("AnySubscription", Subscription, AsyncSubscription)


class Notifier:
    """The subscriptions to all schemas of one database, and the thread that listens for them."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._reset()

    def of(self, schema: str) -> SchemaNotifier:
        return SchemaNotifier(self, schema)

    @property
    def sends_notifications(self) -> bool:
        return self._source.sends_notifications

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self.subscriptions: list[Subscription | AsyncSubscription] = []
        self._thread: threading.Thread | None = None
        self._stop = SYSTEM.event()  # of the thread that listens now
        self._pid = os.getpid()

    def _notice_fork(self) -> None:
        """Start anew after a fork: the child has no such thread, and the lock may stay locked in it for ever."""
        if self._pid != os.getpid():
            self._reset()

    @contextmanager
    def listening(self, subscription: AnySubscription) -> Iterator[AnySubscription]:
        """Within the block, wake this subscription when one of its channels is notified."""
        self._notice_fork()
        with self._lock:
            self.subscriptions.append(subscription)
            if not has_begun(self._thread) and self._source.sends_notifications:
                self._stop = SYSTEM.event()
                self._thread = SYSTEM.thread("listener", partial(self._listen, self._stop))
                start(self._thread)
        try:
            yield subscription
        finally:
            with self._lock:
                self.subscriptions.remove(subscription)

    def publish(self, channels: set[str]) -> None:
        """Wake the subscribers of these channels in this process."""
        self._notice_fork()
        with self._lock:
            for subscription in self.subscriptions:
                if subscription.channels & channels:
                    subscription.wake()

    def close(self) -> None:
        """Stop listening until the next subscription."""
        self._notice_fork()
        with self._lock:
            self._stop.set()
            self._thread = None

    def _listen(self, stop: Event) -> None:
        """Listen. If the connection is lost, connect again and wake all: they may have missed a notification."""
        while not stop.is_set():
            try:
                self._listen_once(stop)
            except Exception as error:
                log.debug("listening to %s failed, retrying in 1 s: %s", self._source.where, error)
                stop.wait(1.0)

    def _listen_once(self, stop: Event) -> None:
        listener = self._source.listen()
        quiet = 0
        try:
            if not self._source.sends_notifications:  # subscribers poll
                return stop.set()
            self.publish(set(self._wanted()))
            while not stop.is_set():
                heard = listener.wait(1.0, self._wanted())
                if heard:
                    self.publish(heard)
                quiet = 0 if self.subscriptions else quiet + 1
                if quiet >= LINGER:
                    self._retire(stop)
        finally:
            listener.close()

    def _wanted(self) -> frozenset[str]:
        with self._lock:
            return frozenset[str]().union(*(subscription.channels for subscription in self.subscriptions))

    def _retire(self, stop: Event) -> None:
        """End this thread, as there has been no subscription for a while, unless one was made just now."""
        with self._lock:
            if not self.subscriptions:
                self._thread = None
                stop.set()


class SchemaNotifier:
    """Subscriptions to the channels of one schema: `notifier.subscribe("jobs")`."""

    def __init__(self, notifier: Notifier, schema: str) -> None:
        self._notifier = notifier
        self._schema = schema

    @property
    def is_heard(self) -> bool:
        """False: it is known that no notification of another process would arrive."""
        return self._notifier.sends_notifications

    def subscribe(
        self, *kinds: str, wake: Callable[[], None] | None = None, key: int | None = None
    ) -> AbstractContextManager[Subscription]:
        """A subscription to some of the channels: queued, jobs, done, request.

        If `wake` is passed, it is called instead of setting the event of the subscription. `key`: also the channels
        that only the subscribers with this key have.
        """
        own = () if key is None else tuple(f"{kind}.{key:x}" for kind in kinds)
        return self._notifier.listening(Subscription(self._channels((*kinds, *own)), wake))

    def subscribe_async(self, *kinds: str) -> AbstractContextManager[AsyncSubscription]:
        """A subscription on the running event loop."""
        return self._notifier.listening(AsyncSubscription(self._channels(kinds)))

    def _channels(self, kinds: tuple[str, ...]) -> frozenset[str]:
        return frozenset(channel(kind, self._schema) for kind in kinds)

    def publish(self, kinds: set[str]) -> None:
        """Wake the subscribers in this process."""
        if self._notifier.subscriptions:
            self._notifier.publish({channel(kind, self._schema) for kind in kinds})

    def close(self) -> None:
        """Stop listening until the next subscription."""
        self._notifier.close()

    @property
    def subscriptions(self) -> int:
        """How many subscriptions there are, to all schemas."""
        return len(self._notifier.subscriptions)
