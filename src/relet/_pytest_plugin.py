"""The pytest plugin, which pytest loads where Relet is installed: the fixture `relet_app`.

Name your app in pytest's configuration: `relet_app = "shop:app"`. In a test that uses the fixture, the jobs of the app
live in memory and run when the test says so. This module imports little: pytest loads it in every run.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .testing import Harness

MEMORY = "sqlite:///:memory:"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("relet_app", "the app of the fixture relet_app, such as shop:app", default="")
    group = parser.getgroup("relet")
    group.addoption(
        "--relet-url", metavar="URL", default=MEMORY, help="a PostgreSQL for the fixture relet_app (default: in memory)"
    )


@pytest.fixture
def relet_app(pytestconfig: pytest.Config) -> Iterator[Harness]:
    """The app that `relet_app` names in pytest's configuration, or a new one, with an empty store for this test."""
    from ._cli.load_app import CommandError, load_app
    from .app import App
    from .testing import harness

    name: str = pytestconfig.getini("relet_app")
    try:
        app = load_app(name) if name else App(MEMORY)
    except CommandError as error:
        pytest.fail(f"relet_app = {name!r} in pytest's configuration: {error}", pytrace=False)
    with harness(app, pytestconfig.getoption("--relet-url")) as testing:
        yield testing
