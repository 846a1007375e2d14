"""Several worker processes. The supervisor starts them, replaces those that die, and passes signals on to all."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
from contextlib import suppress

from .._core.text import listed
from .._system import SYSTEM
from .signals import SignalPipe
from .source_files import SourceFiles

log = logging.getLogger("relet.worker")

FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
HURRY_AFTER = 1.0  # seconds that jobs have to end before a restart; then they are given back
HEALTHY_AFTER = 30.0  # seconds; a process that has run for this long is replaced at once
REACHED_LIMIT = 64  # the exit code of a process that stopped at max_jobs or max_rss, and is to be replaced


class Member:
    """One process of the supervisor, and the processes that replace it."""

    def __init__(self, number: int, pipe: int) -> None:
        self._number = number
        self._pipe = pipe
        self._pause = FIRST_PAUSE
        self._started = 0.0
        self._process: subprocess.Popen[bytes] | None = None
        self._start_at = 0.0
        self._hurry_at: float | None = None  # when to signal a process again that is to be restarted

    @property
    def runs(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start_if_due(self) -> None:
        """Replace a process that has exited: at once if it was healthy, else after a pause that doubles each time."""
        if self._process is not None:
            self._note_end(self._process)
        if self._hurry_at is not None and SYSTEM.monotonic() >= self._hurry_at:
            self._hurry_at = SYSTEM.monotonic() + HURRY_AFTER
            self.send_signal(signal.SIGTERM)
        if self._process is None and SYSTEM.monotonic() >= self._start_at:
            self._started = SYSTEM.monotonic()
            # In a new process group, so that it gets a Ctrl-C only once: from the supervisor, not from the terminal.
            self._process = subprocess.Popen(
                [sys.executable, "-m", "relet", *sys.argv[1:], "--supervisor-pipe", str(self._pipe)],
                pass_fds=[self._pipe],
                process_group=0,
            )
            log.info("Started worker process %d (pid %d)", self._number, self._process.pid)

    def restart(self) -> None:
        """Have the process end, soon, and start another at once."""
        self._start_at, self._pause = 0.0, FIRST_PAUSE
        if self._process is not None:
            self._hurry_at = SYSTEM.monotonic() + HURRY_AFTER
            self.send_signal(signal.SIGTERM)

    def end(self) -> int:
        """Wait until the process has exited, and return its exit code as a shell would show it."""
        code = self._process.wait() if self._process is not None else 0
        if code in (-signal.SIGTERM, REACHED_LIMIT):
            return 0  # it was stopped before it handled signals, or would have been replaced
        return code if code >= 0 else 128 - code

    def send_signal(self, number: int) -> None:
        if self._process is not None and self.runs:
            with suppress(ProcessLookupError):
                self._process.send_signal(number)

    def _note_end(self, process: subprocess.Popen[bytes]) -> None:
        code = process.poll()
        if code is None:
            return
        self._process = None
        if self._hurry_at is not None:  # it was to be restarted
            self._hurry_at = None
            return
        lived = SYSTEM.monotonic() - self._started
        if code == REACHED_LIMIT or lived > HEALTHY_AFTER:
            self._pause, wait = FIRST_PAUSE, 0.0
        else:
            wait, self._pause = self._pause, min(2 * self._pause, LONGEST_PAUSE)
        self._start_at = SYSTEM.monotonic() + wait
        level = logging.INFO if code == REACHED_LIMIT else logging.WARNING
        text = "Worker process %d (pid %d) exited with code %d; starting another in %g s"
        log.log(level, text, self._number, process.pid, code, wait)


class Supervisor:
    """Keeps a number of worker processes running, each with the command line of this process.

    With `files`, it restarts them when one of these files was changed.
    """

    def __init__(self, processes: int, files: SourceFiles | None = None) -> None:
        self._files = files
        # The children inherit the read end. Only this process has the write end: when it dies, they read the end of
        # the pipe, and stop.
        self._pipe, self._write_end = os.pipe()
        self._members = [Member(number + 1, self._pipe) for number in range(processes)]
        self._stops = 0

    def run(self) -> int:
        """Work until a signal comes and all processes have exited. Returns the exit code."""
        signals = SignalPipe(signal.SIGCHLD)
        while not self._stops or any(member.runs for member in self._members):
            if not self._stops:
                self._restart_if_changed()
                for member in self._members:
                    member.start_if_due()
            for number in signals.stops(0.2):
                if not self._stops or any(member.runs for member in self._members):
                    self._stop(number)
        signals.ignore()
        return max((member.end() for member in self._members), default=0)

    def _restart_if_changed(self) -> None:
        changed = self._files.changed() if self._files is not None else []
        if changed:
            log.info("Restarting, because files were changed: %s", listed(changed))
            for member in self._members:
                member.restart()

    def _stop(self, number: signal.Signals) -> None:
        self._stops += 1
        log.info("Received %s (%d): passing it on to the worker processes", number.name, self._stops)
        for member in self._members:
            member.send_signal(signal.SIGTERM if self._stops < 3 else signal.SIGKILL)
        if self._stops > 2:
            os._exit(128 + number)
