"""Notifications for a worker behind a gateway.

New jobs end the wait of a claim at the gateway, so there is nothing to notify of. A thread waits there for requests to
cancel or pause, and wakes the heartbeat. It runs while there is a subscription to requests.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import TYPE_CHECKING

from .._core.job import Lease
from .._store.notify import SchemaNotifier, Subscription
from .._store.retry import Transient, backoff
from .._system import SYSTEM, Event
from ..errors import ReletError
from . import wire
from .channel import Channel

if TYPE_CHECKING:
    from .store import Session

log = logging.getLogger("relet.worker")

WAIT = 20.0  # seconds that a request waits
ASK_AGAIN = 1.0  # seconds after an answer that tells of requests: the worker is acting on them
LONGEST_PAUSE = 5.0
INTERRUPT_WITHIN = 1.0  # seconds


class RemoteNotifier(SchemaNotifier):
    """`subscribe("queued")`: at the end of the block, claims that wait are answered."""

    def __init__(self, session: Session, channel: Channel) -> None:
        self._session, self._channel = session, channel

    @property
    def is_heard(self) -> bool:
        """False: the gateway asks for notifications."""
        return False

    def subscribe(
        self, *kinds: str, wake: Callable[[], None] | None = None, key: int | None = None
    ) -> AbstractContextManager[Subscription]:
        return self._subscribed(kinds, wake)

    @contextmanager
    def _subscribed(self, kinds: tuple[str, ...], wake: Callable[[], None] | None) -> Iterator[Subscription]:
        subscription = Subscription(frozenset(kinds), wake)
        stop = SYSTEM.event()
        if "request" in kinds:
            SYSTEM.spawn("requests", partial(self._watch, stop, subscription.wake))
        try:
            yield subscription
        finally:
            stop.set()
            if kinds and set(kinds) & {"queued", "request"}:
                SYSTEM.beside("interrupt", self._interrupt)

    def _watch(self, stop: Event, wake: Callable[[], None]) -> None:
        """Wait for requests at the gateway, again and again. Renewals find them, too, so that no error matters."""
        failures = 0
        while not stop.is_set():
            try:
                asked = wire.RequestsIn(self._session.worker, WAIT)
                found = self._channel.call("requests", asked, wire.RequestsOut, WAIT)
            except (Transient, ReletError) as error:
                failures += 1
                log.debug("Cannot wait for requests: %s", error)
                stop.wait(backoff(failures, LONGEST_PAUSE))
                continue
            failures = 0
            requests = {Lease(one.id, one.token): one.request for one in found.requests if one.request is not None}
            self._session.requests = dict(requests)
            if requests:
                wake()
                stop.wait(ASK_AGAIN)

    def _interrupt(self) -> None:
        """Have the gateway answer outstanding requests, as the worker ends."""
        channel = Channel(self._channel.gateways, INTERRUPT_WITHIN)
        try:
            channel.call("interrupt", wire.InterruptIn(self._session.worker), wire.Nothing)
        except (Transient, ReletError) as error:
            log.debug("Cannot end the wait of a claim: %s", error)
        finally:
            channel.close()

    def publish(self, kinds: set[str]) -> None:
        """The gateway notifies."""

    def close(self) -> None:
        """Each subscription ends its thread."""

    @property
    def subscriptions(self) -> int:
        return 0
