"""From `shop:app` to the app, or to a sentence that says what is wrong with it."""

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
from .._core.redact import Redact, shown
from ..app import App


class Wrong(Exception):
    """What the user gave cannot be used. The message says why, and what to do."""


def load_app(given: str) -> App:
    """Import the module and take the app out of it."""
    module_name, _, attribute = given.partition(":")
    if not module_name or module_name.endswith(".py") or "/" in module_name:
        hint = module_name.removesuffix(".py").replace("/", ".").strip(".") or "shop"
        raise Wrong(f"an app is named as module:attribute, as in {hint}:app, not {given!r}")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and (module_name == error.name or module_name.startswith(f"{error.name}.")):
            raise Wrong(
                f"there is no module {error.name!r} to import; the working directory is {os.getcwd()}, and Python "
                "looks there first: is the name right, and is this the right directory?"
            ) from None
        raise Wrong(_failed(module_name, error)) from None
    except (Exception, SystemExit) as error:
        raise Wrong(_failed(module_name, error)) from None
    return _app_of(module, module_name, attribute)


@contextmanager
def opened(options: argparse.Namespace) -> Iterator[tuple[App, Client]]:
    """The app that was named, and a client of it whose changes are put down to whoever typed the command."""
    logs.configure("error", as_json=False)
    app = load_app(options.app)
    try:
        client = app.client if options.tenant is None else app.client.tenant(options.tenant)
        yield app, cast(Client, Shown(client.acting_as(who()), app.redact))
    finally:
        app.close()


class Shown:
    """A client, or a part of one, whose every answer is redacted as the dashboard does it."""

    def __init__(self, client: object, redact: Redact) -> None:
        self._client = client
        self._redact = redact

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._client, name)
        if isinstance(found, Schedules):
            return Shown(found, self._redact)
        if not inspect.ismethod(found):
            return found

        def call(*args: Any, **kwargs: Any) -> Any:
            return shown(found(*args, **kwargs), self._redact)

        return call


def who() -> str:
    """Who is at the keyboard, for the audit trail."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container may have no name for its user
        user = str(os.getuid())
    name = f"cli:{user}@{socket.gethostname()}"
    return "".join(letter if letter.isprintable() else "?" for letter in name)[:512]


def _app_of(module: object, module_name: str, attribute: str) -> App:
    there = {name: value for name, value in vars(module).items() if isinstance(value, App)}
    found = getattr(module, attribute or "app", None)
    if isinstance(found, App):
        return found
    if not attribute and len(there) == 1:
        return next(iter(there.values()))
    if found is not None:
        raise Wrong(
            f"{module_name}:{attribute} is {type(found).__name__}, not a relet App{_choices(module_name, there)}"
        )
    near = difflib.get_close_matches(attribute, there, n=1)
    hint = f"; did you mean {module_name}:{near[0]}?" if near else _choices(module_name, there)
    raise Wrong(f"module {module_name} has no {attribute or 'app'}{hint}")


def _choices(module_name: str, there: dict[str, App]) -> str:
    if not there:
        return f"; there is no App in {module_name}"
    return "; there is " + ", ".join(f"{module_name}:{name}" for name in sorted(there))


def _failed(module_name: str, error: BaseException) -> str:
    """What went wrong in the user's module, and where."""
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [frame for frame in frames if "importlib" not in frame.filename and "relet" not in frame.filename]
    where = f" ({theirs[-1].filename}:{theirs[-1].lineno})" if theirs else ""
    return f"importing {module_name} failed: {type(error).__name__}: {error}{where}"
