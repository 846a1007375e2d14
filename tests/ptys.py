"""Programs on a terminal: a pseudo-terminal of this machine, with a size, keys, and the text drawn on it."""

from __future__ import annotations

import fcntl
import os
import re
import select
import struct
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from tests import forks

TIMEOUT = 20.0
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|\x1b\][^\x07]*\x07")
HOME = "\x1b[H"
ALTERNATE, ORDINARY = "\x1b[?1049h", "\x1b[?1049l"
CURSOR_HIDDEN, CURSOR_VISIBLE = "\x1b[?25l", "\x1b[?25h"


class OnTerminal:
    """`relet ...` on a new controlling terminal: Ctrl-C reaches it as it would from a keyboard."""

    def __init__(
        self,
        folder: Path,
        *arguments: str,
        size: tuple[int, int] = (80, 24),
        program: tuple[str, ...] = ("-m", "relet"),
    ) -> None:
        self._master, self._slave = os.openpty()
        self.resize(*size)
        self.modes_before = self.modes()
        self._drawn = ""
        environment = {name: value for name, value in os.environ.items() if name not in ("RELET_URL", "NO_COLOR")}
        self.process = forks.Popen(
            [sys.executable, *program, *arguments],
            cwd=folder,
            stdin=self._slave,
            stdout=self._slave,
            stderr=self._slave,
            start_new_session=True,  # whose own terminal becomes its standard input
            env={**environment, "TERM": "xterm-256color"},
        )

    def __enter__(self) -> OnTerminal:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._master)
        os.close(self._slave)

    def resize(self, width: int, height: int) -> None:
        fcntl.ioctl(self._slave, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def modes(self) -> list[Any]:
        """How the terminal is set: whether it echoes, waits for whole lines, and so on."""
        return termios.tcgetattr(self._slave)

    def press(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def shows(self, *texts: str, within: float = TIMEOUT) -> str:
        """Wait until the page that was drawn last has all these texts; that page."""
        return self.draws(lambda page: all(text in page for text in texts), f"{texts}", within)

    def draws(self, holds: Callable[[str], bool], what: str, within: float = TIMEOUT) -> str:
        """Wait until the page that was drawn last is as it should be."""
        give_up = time.monotonic() + within
        while not holds(self.page):
            assert time.monotonic() < give_up, f"waited for {what} in:\n{self.page}"
            self._read(0.1)
        return self.page

    @property
    def page(self) -> str:
        """The text drawn since the cursor was home last, without colours."""
        return ESCAPE.sub("", self._drawn.rpartition(HOME)[2]).replace("\r", "")

    @property
    def all_drawn(self) -> str:
        """Everything, escape sequences included."""
        return self._drawn

    def code(self, within: float = TIMEOUT) -> int:
        """Its exit code. All output until then has been read."""
        give_up = time.monotonic() + within
        while self.process.poll() is None:
            assert time.monotonic() < give_up, f"it has not ended:\n{self.page}"
            self._read(0.05)
        self._read(0.0)
        return self.process.returncode

    def _read(self, seconds: float) -> None:
        while select.select([self._master], [], [], seconds)[0]:
            self._drawn += os.read(self._master, 65536).decode(errors="replace")
            seconds = 0.0
