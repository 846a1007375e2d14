"""Signals by a pipe: they are read where it suits, so that no lock of a handler's thread is in the way."""

from __future__ import annotations

import select
import signal
import socket
from collections.abc import Iterator

from .._system import SYSTEM

STOPS = (signal.SIGTERM, signal.SIGINT)

#: Seconds in which signals count as one: `timeout` sends one to a process, and then to the group that it is in.
AT_ONCE = 0.5


class SignalPipe:
    """From its making on, SIGTERM and SIGINT do nothing but arrive here. `others` interrupt the waiting as well."""

    def __init__(self, *others: signal.Signals, at_once: float = AT_ONCE) -> None:
        self._heard, self._said = socket.socketpair()
        self._said.setblocking(False)
        signal.set_wakeup_fd(self._said.fileno(), warn_on_full_buffer=False)
        for number in (*STOPS, *others):
            signal.signal(number, lambda *_: None)
        self._at_once = at_once
        self._counted = float("-inf")

    def stops(self, seconds: float | None = None) -> Iterator[signal.Signals]:
        """Wait until something arrives, or for so many seconds; those that say stop, if not just said before."""
        if select.select([self._heard], [], [], seconds)[0]:
            for number in self._heard.recv(64):
                if number in STOPS and SYSTEM.monotonic() - self._counted >= self._at_once:
                    self._counted = SYSTEM.monotonic()
                    yield signal.Signals(number)

    def ignore(self) -> None:
        """From now on nothing ends this process but itself: also while the interpreter shuts down, where handlers
        written in Python are taken away. To be called in the main thread."""
        for number in STOPS:
            signal.signal(number, signal.SIG_IGN)
