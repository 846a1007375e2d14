"""Import the app that `shop:app` names, or raise an error that says what to fix."""

from __future__ import annotations

import argparse
import difflib
import getpass
import importlib
import inspect
import os
import socket
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

from .. import logs
from .._client.client import Client
from .._client.schedules import Schedules
from .._core.redact import Redact, redacted
from ..app import App


class CommandError(Exception):
    """The command cannot run. The message says why, and what to do."""


def load_app(path: str) -> App:
    """Import the module and return its app."""
    module_name, _, attribute = path.partition(":")
    if not module_name or module_name.endswith(".py") or "/" in module_name:
        hint = module_name.removesuffix(".py").replace("/", ".").strip(".") or "shop"
        raise CommandError(f"Name the app as module:attribute, such as {hint}:app, not {path!r}.")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and (module_name == error.name or module_name.startswith(f"{error.name}.")):
            raise CommandError(
                f"Cannot find module {error.name!r}. Python searches the working directory first, which is "
                f"{os.getcwd()}. Check the name and the directory."
            ) from None
        raise CommandError(_import_error(module_name, error)) from None
    except (Exception, SystemExit) as error:
        raise CommandError(_import_error(module_name, error)) from None
    return _app_of(module, module_name, attribute)


@contextmanager
def opened(options: argparse.Namespace) -> Iterator[tuple[App, Client]]:
    """The app of the command, and a client whose changes the audit trail records under the current user."""
    logs.configure("error", as_json=False)
    app = load_app(options.app)
    try:
        client = app.client if options.tenant is None else app.client.tenant(options.tenant)
        yield app, cast(Client, RedactingClient(client._without_codecs().acting_as(who()), app.redact))
    finally:
        app.close()


class RedactingClient:
    """Wraps a client, or its schedules, and redacts every return value as the dashboard does."""

    def __init__(self, client: object, redact: Redact) -> None:
        self._client = client
        self._redact = redact

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._client, name)
        if isinstance(found, Schedules):
            return RedactingClient(found, self._redact)
        if not inspect.ismethod(found):
            return found

        def call(*args: Any, **kwargs: Any) -> Any:
            return redacted(found(*args, **kwargs), self._redact)

        return call


def who() -> str:
    """The name of the current user in the audit trail."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError, ImportError):  # in a container the user may have no name
        user = str(os.getuid()) if hasattr(os, "getuid") else "unknown"
    name = f"cli:{user}@{socket.gethostname()}"
    return "".join(letter if letter.isprintable() else "?" for letter in name)[:512]


def _app_of(module: object, module_name: str, attribute: str) -> App:
    apps = {name: value for name, value in vars(module).items() if isinstance(value, App)}
    found = getattr(module, attribute or "app", None)
    if isinstance(found, App):
        return found
    if not attribute and len(apps) == 1:
        return next(iter(apps.values()))
    if found is not None:
        kind = type(found).__name__
        raise CommandError(
            f"{module_name}:{attribute} is of type {kind}, not a relet App. {_choices(module_name, apps)}"
        )
    near = difflib.get_close_matches(attribute, apps, n=1)
    hint = f"Did you mean {module_name}:{near[0]}?" if near else _choices(module_name, apps)
    raise CommandError(f"Module {module_name} has no {attribute or 'app'}. {hint}")


def _choices(module_name: str, apps: dict[str, App]) -> str:
    if not apps:
        return f"Module {module_name} defines no App."
    return f"Available: {', '.join(f'{module_name}:{name}' for name in sorted(apps))}."


def _import_error(module_name: str, error: BaseException) -> str:
    """Describe an error in the user's module, with file and line."""
    frames = traceback.extract_tb(error.__traceback__)
    user_frames = [frame for frame in frames if "importlib" not in frame.filename and "relet" not in frame.filename]
    where = f" ({user_frames[-1].filename}:{user_frames[-1].lineno})" if user_frames else ""
    return f"Importing {module_name} failed: {type(error).__name__}: {error}{where}"
