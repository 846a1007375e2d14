"""The terminal: keys in, a page out, and everything as it was when it is left, however that happens."""

from __future__ import annotations

import codecs
import logging
import os
import re
import select
import signal
import sys
import termios
import tty
from contextlib import ExitStack, suppress
from types import FrameType, TracebackType
from typing import Any

from rich.console import Console
from rich.live import Live

from .screen import frame
from .state import Desk

KEY = re.compile(r"\x1b\[[0-9;]*[A-Za-z~]|\x1bO[A-Za-z]|.", re.S)
NAMES = {
    "\x1b[A": "up", "\x1bOA": "up", "\x1b[B": "down", "\x1bOB": "down", "\x1b[C": "right", "\x1bOC": "right",
    "\x1b[D": "left", "\x1bOD": "left", "\x1b[Z": "back-tab", "\x1b[5~": "page-up", "\x1b[6~": "page-down",
    "\x1b[H": "home", "\x1b[1~": "home", "\x1bOH": "home", "\x1b[F": "end", "\x1b[4~": "end", "\x1bOF": "end",
    "\t": "tab", "\r": "enter", "\n": "enter", "\x7f": "backspace", "\x08": "backspace", "\x1b": "esc",
}  # fmt: skip
UNFINISHED = re.compile(r"\x1b(\[[0-9;]*|O)?\Z")
REST_OF_A_KEY = 0.05  # a slow line may bring an arrow in two parts
REDRAW_EVERY = 1.0  # leases count down, whatever the database does


def keys_of(text: str) -> list[str]:
    """What was pressed; keys without a name here are left out."""
    found = [NAMES.get(part, part) for part in KEY.findall(text)]
    return [key for key in found if not key.startswith("\x1b")]


class Terminal:
    """For `with`: takes the terminal, and gives it back."""

    def __init__(self, wakes: int) -> None:
        self._wakes = wakes
        self._keyboard = sys.stdin.fileno()
        self._console = Console(_environ=without_size())
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._stack = ExitStack()

    def __enter__(self) -> Terminal:
        with ExitStack() as stack:
            before = termios.tcgetattr(self._keyboard)
            stack.callback(termios.tcsetattr, self._keyboard, termios.TCSADRAIN, before)
            tty.setcbreak(self._keyboard, termios.TCSANOW)
            self._without_suspend()
            stack.callback(logging.disable, logging.root.manager.disable)
            logging.disable(logging.CRITICAL)  # what went wrong is said on the page
            self._resized, self._resize = os.pipe()
            stack.callback(os.close, self._resized)
            stack.callback(os.close, self._resize)
            os.set_blocking(self._resize, False)
            for number, handler in ((signal.SIGWINCH, self._noted), (signal.SIGTERM, _leave), (signal.SIGHUP, _leave)):
                stack.callback(signal.signal, number, signal.signal(number, handler))
            self._live = stack.enter_context(
                Live(console=self._console, screen=True, auto_refresh=False, redirect_stdout=False)
            )
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stack.close()

    def draw(self, desk: Desk) -> None:
        """A page of the size that the terminal has now."""
        width, height = self._console.size
        self._live.update(frame(desk, width, height), refresh=True)

    def wait(self) -> list[str]:
        """Until something has happened, or a second is over; the keys that were pressed."""
        ready = self._ready(REDRAW_EVERY, self._keyboard, self._wakes, self._resized)
        for pipe in (self._wakes, self._resized):
            if pipe in ready:
                os.read(pipe, 4096)
        return self._keys() if self._keyboard in ready else []

    def _keys(self) -> list[str]:
        text = self._read()
        while UNFINISHED.search(text) and self._ready(REST_OF_A_KEY, self._keyboard):
            text += self._read()
        return keys_of(text)

    def _read(self) -> str:
        read = b""
        with suppress(OSError):
            read = os.read(self._keyboard, 4096)
        if not read:
            raise KeyboardInterrupt  # the terminal is gone
        return self._decode(read)

    def _ready(self, seconds: float, *files: int) -> list[int]:
        return select.select(files, [], [], seconds)[0]

    def _without_suspend(self) -> None:
        """Ctrl-Z would leave the shell with our screen."""
        modes: list[Any] = termios.tcgetattr(self._keyboard)
        modes[6][termios.VSUSP] = b"\x00"
        termios.tcsetattr(self._keyboard, termios.TCSANOW, modes)

    def _noted(self, number: int, frame: FrameType | None) -> None:
        with suppress(BlockingIOError):
            os.write(self._resize, b".")


def _leave(number: int, frame: FrameType | None) -> None:
    sys.exit(128 + number)


def without_size() -> dict[str, str]:
    """The environment without the size that a shell has put there once: the terminal knows its own."""
    return {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
