"""The terminal: reads keys, draws pages, and restores all modes on exit, even after an error."""

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
from .state import TopState

KEY = re.compile(r"\x1b\[[0-9;]*[A-Za-z~]|\x1bO[A-Za-z]|.", re.S)
NAMES = {
    "\x1b[A": "up", "\x1bOA": "up", "\x1b[B": "down", "\x1bOB": "down", "\x1b[C": "right", "\x1bOC": "right",
    "\x1b[D": "left", "\x1bOD": "left", "\x1b[Z": "back-tab", "\x1b[5~": "page-up", "\x1b[6~": "page-down",
    "\x1b[H": "home", "\x1b[1~": "home", "\x1bOH": "home", "\x1b[F": "end", "\x1b[4~": "end", "\x1bOF": "end",
    "\t": "tab", "\r": "enter", "\n": "enter", "\x7f": "backspace", "\x08": "backspace", "\x1b": "esc",
}  # fmt: skip
UNFINISHED = re.compile(r"\x1b(\[[0-9;]*|O)?\Z")
REST_OF_A_KEY = 0.05  # a slow connection may deliver an arrow key in two parts
REDRAW_EVERY = 1.0  # lease times count down even without new data


def keys_of(text: str) -> list[str]:
    """Names of the keys in the input; unknown escape sequences are left out."""
    found = [NAMES.get(part, part) for part in KEY.findall(text)]
    return [key for key in found if not key.startswith("\x1b")]


class Terminal:
    """Context manager that takes over the terminal and restores it."""

    def __init__(self, wakeup: int) -> None:
        self._wakeup = wakeup
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
            logging.disable(logging.CRITICAL)  # errors are displayed on the page
            self._resized, self._resize = os.pipe()
            stack.callback(os.close, self._resized)
            stack.callback(os.close, self._resize)
            os.set_blocking(self._resize, False)
            for number, handler in (
                (signal.SIGWINCH, self._on_resize),
                (signal.SIGTERM, _exit),
                (signal.SIGHUP, _exit),
            ):
                stack.callback(signal.signal, number, signal.signal(number, handler))
            self._live = stack.enter_context(
                Live(console=self._console, screen=True, auto_refresh=False, redirect_stdout=False)
            )
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stack.close()

    def draw(self, state: TopState) -> None:
        """Draw a page in the current size of the terminal."""
        width, height = self._console.size
        self._live.update(frame(state, width, height), refresh=True)

    def wait(self) -> list[str]:
        """Wait for a key, an update or a resize, at most a second. Returns the keys that were pressed."""
        ready = self._ready(REDRAW_EVERY, self._keyboard, self._wakeup, self._resized)
        for pipe in (self._wakeup, self._resized):
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
            raise KeyboardInterrupt  # the terminal was closed
        return self._decode(read)

    def _ready(self, seconds: float, *files: int) -> list[int]:
        return select.select(files, [], [], seconds)[0]

    def _without_suspend(self) -> None:
        """Disable Ctrl-Z, which would leave the shell in the alternate screen."""
        modes: list[Any] = termios.tcgetattr(self._keyboard)
        modes[6][termios.VSUSP] = b"\x00"
        termios.tcsetattr(self._keyboard, termios.TCSANOW, modes)

    def _on_resize(self, number: int, frame: FrameType | None) -> None:
        with suppress(BlockingIOError):
            os.write(self._resize, b".")


def _exit(number: int, frame: FrameType | None) -> None:
    sys.exit(128 + number)


def without_size() -> dict[str, str]:
    """The environment without COLUMNS and LINES, which may be outdated: the terminal knows its size."""
    return {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
