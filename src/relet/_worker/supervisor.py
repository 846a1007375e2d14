"""Several worker processes: started alike, replaced when they die, told to stop together."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
from contextlib import suppress

from .._system import SYSTEM
from .signals import SignalPipe

log = logging.getLogger("relet.worker")

FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
HEALTHY_AFTER = 30.0  # seconds: who has lived for so long may be replaced at once
DONE_ITS_SHARE = 64  # the exit code of a process that wants to be replaced


class Member:
    """One process, and those that take its place."""

    def __init__(self, number: int, leash: int) -> None:
        self._number = number
        self._leash = leash
        self._pause = FIRST_PAUSE
        self._started = 0.0
        self._process: subprocess.Popen[bytes] | None = None
        self._start_at = 0.0

    @property
    def runs(self) -> bool:
        """Whether the process lives."""
        return self._process is not None and self._process.poll() is None

    def start_if_due(self) -> None:
        """Replace a process that has ended: at once if it was healthy, later and later if not."""
        if self._process is not None:
            self._note_end(self._process)
        if self._process is None and SYSTEM.monotonic() >= self._start_at:
            self._started = SYSTEM.monotonic()
            # In a group of its own: a Ctrl-C at the terminal reaches it through us, once.
            self._process = subprocess.Popen(  # noqa: S603
                [sys.executable, "-m", "relet", *sys.argv[1:], "--leash", str(self._leash)],
                pass_fds=[self._leash],
                process_group=0,
            )
            log.info("worker process %d is %d", self._number, self._process.pid)

    def end(self) -> int:
        """How the last one ended, once it has."""
        code = self._process.wait() if self._process is not None else 0
        if code in (-signal.SIGTERM, DONE_ITS_SHARE):
            return 0  # it was told to stop before it had begun, or would have been replaced
        return code if code >= 0 else 128 - code

    def tell(self, number: int) -> None:
        """Pass a signal on."""
        if self._process is not None and self.runs:
            with suppress(ProcessLookupError):
                self._process.send_signal(number)

    def _note_end(self, process: subprocess.Popen[bytes]) -> None:
        code = process.poll()
        if code is None:
            return
        self._process = None
        lived = SYSTEM.monotonic() - self._started
        if code == DONE_ITS_SHARE or lived > HEALTHY_AFTER:
            self._pause, wait = FIRST_PAUSE, 0.0
        else:
            wait, self._pause = self._pause, min(2 * self._pause, LONGEST_PAUSE)
        self._start_at = SYSTEM.monotonic() + wait
        level = logging.INFO if code == DONE_ITS_SHARE else logging.WARNING
        text = "worker process %d (%d) ended with %d; the next starts in %g s"
        log.log(level, text, self._number, process.pid, code, wait)


class Supervisor:
    """Keeps so many worker processes alive. Each gets the arguments that this process was started with."""

    def __init__(self, processes: int) -> None:
        # The children hold the other end: when this process is gone, however it went, they notice and stop.
        self._leash, self._held = os.pipe()
        self._members = [Member(number + 1, self._leash) for number in range(processes)]
        self._stops = 0

    def run(self) -> int:
        """Until told to stop, and until all have stopped."""
        signals = SignalPipe(signal.SIGCHLD)
        while not self._stops or any(member.runs for member in self._members):
            if not self._stops:
                for member in self._members:
                    member.start_if_due()
            for number in signals.stops(0.2):
                if not self._stops or any(member.runs for member in self._members):
                    self._stop(number)
        signals.ignore()
        return max((member.end() for member in self._members), default=0)

    def _stop(self, number: signal.Signals) -> None:
        self._stops += 1
        log.info("%s (%d): passed on to the worker processes", number.name, self._stops)
        for member in self._members:
            member.tell(signal.SIGTERM if self._stops < 3 else signal.SIGKILL)
        if self._stops > 2:
            os._exit(128 + number)
