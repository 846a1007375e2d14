"""`manage.py relet worker`, and every other command of `relet` for the app of a task backend."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError, handle_default_options

from relet._cli.main import build
from relet._cli.main import main as run_command
from relet._worker.signals import STOPS
from relet.contrib.django.backend import ReletBackend
from relet.contrib.django.databases import opened
from relet.contrib.django.framework import task_backends


class Command(BaseCommand):  # type: ignore[misc]
    """Runs a command of `relet`, with the app of the backend in place of APP."""

    help = "Run a command of relet, such as worker, jobs or migrate, for the app of a task backend."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("words", nargs=argparse.REMAINDER, metavar="COMMAND ...")

    def run_from_argv(self, argv: list[str]) -> None:
        """Pass all arguments on, and exit. Options of manage.py may be anywhere."""
        parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
        for option in ("--settings", "--pythonpath"):
            parser.add_argument(option)
        options, words = parser.parse_known_args(argv[2:])
        handle_default_options(options)
        try:
            self._run(words)
        except (CommandError, ImproperlyConfigured) as error:
            self.stderr.write(f"relet: {error}")
            sys.exit(1)

    def handle(self, *args: Any, words: Sequence[str], **options: Any) -> None:
        """For `call_command`: raise an error in place of an exit, and leave the process as it was."""
        with _restored_process():
            try:
                self._run(list(words))
            except SystemExit as end:
                if end.code:
                    raise CommandError(
                        f"relet {' '.join(words)} failed", returncode=end.code if isinstance(end.code, int) else 1
                    ) from None

    def _run(self, words: list[str]) -> None:
        parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
        parser.add_argument("--backend", default=None)
        options, words = parser.parse_known_args(words)
        if words and words[0] in _commands_with_app():
            backend = _backend(options.backend)
            name = "app" if backend.alias == "default" else backend.alias
            words = [words[0], f"relet.contrib.django:{name}", *words[1:]]
            if words[0] == "worker":
                words += self._worker_options(backend, words)
        _let_children_import()
        sys.argv = ["relet", *words]  # a supervisor starts its processes with it
        run_command(words)

    def _worker_options(self, backend: ReletBackend, words: list[str]) -> list[str]:
        """The queues of the backend, and the logging of Django if its settings configure some."""
        self.check()
        added = []
        if not any(word.startswith(("-q", "--queue")) for word in words):
            for queue in sorted(backend.queues):
                added += ["--queue", queue]
        if logging.getLogger().handlers and not any(word.startswith("--log-format") for word in words):
            added += ["--log-format", "none"]
        return added


@contextmanager
def _restored_process() -> Iterator[None]:
    """Restore what a command changes in the process, which would exit after it on a command line."""
    argv, root = sys.argv, logging.getLogger()
    handlers, level = root.handlers[:], root.level
    is_main = threading.current_thread() is threading.main_thread()
    on_signals = {number: signal.getsignal(number) for number in STOPS} if is_main else {}
    wakeup_fd = signal.set_wakeup_fd(-1) if is_main else -1
    try:
        yield
    finally:
        sys.argv = argv
        root.handlers[:], root.level = handlers, level
        for number, handler in on_signals.items():
            signal.signal(number, handler)
        if is_main:
            signal.set_wakeup_fd(wakeup_fd)
        for app in opened():
            app.close()


def _backend(alias: str | None) -> ReletBackend:
    """The backend of that alias; without one, the only one of Relet, or the default."""
    ours = [one for one in getattr(settings, "TASKS", {}) if isinstance(task_backends[one], ReletBackend)]
    if alias is None and len(ours) == 1:
        (alias,) = ours
    if (alias or "default") not in ours:
        named = f"TASKS[{alias!r}] is no ReletBackend" if alias else "TASKS['default'] is no ReletBackend"
        raise CommandError(f"{named}; --backend can be {', '.join(ours) or 'none: TASKS names no ReletBackend'}")
    backend: ReletBackend = task_backends[alias or "default"]
    return backend


def _commands_with_app() -> set[str]:
    """The commands whose first argument is an app."""
    (commands,) = [action for action in build()._actions if isinstance(action, argparse._SubParsersAction)]
    return {name for name, one in commands.choices.items() if _takes_app(one)}


def _takes_app(parser: argparse.ArgumentParser) -> bool:
    return any(action.dest == "app" for action in parser._actions)


def _let_children_import() -> None:
    """Processes that a supervisor starts import the same modules: manage.py puts its directory on the path."""
    folders = [os.path.abspath(sys.path[0] or "."), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(one for one in folders if one))
