"""Signals by a pipe: they are read where it suits, so that no lock of a handler's thread is in the way."""

from __future__ import annotations

import select
import signal
import socket
from collections.abc import Iterator

STOPS = (signal.SIGTERM, signal.SIGINT)


class SignalPipe:
    """From its making on, SIGTERM and SIGINT do nothing but arrive here. `others` interrupt the waiting as well."""

    def __init__(self, *others: signal.Signals) -> None:
        self._heard, self._said = socket.socketpair()
        self._said.setblocking(False)
        signal.set_wakeup_fd(self._said.fileno(), warn_on_full_buffer=False)
        for number in (*STOPS, *others):
            signal.signal(number, lambda *_: None)

    def stops(self, seconds: float | None = None) -> Iterator[signal.Signals]:
        """Wait until something arrives, or for so many seconds; those that say stop."""
        if select.select([self._heard], [], [], seconds)[0]:
            yield from (signal.Signals(number) for number in self._heard.recv(64) if number in STOPS)
