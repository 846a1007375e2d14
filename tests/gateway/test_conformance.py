"""The gateway keeps the protocol, on every store."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from relet import App
from tests.gateway.conformance import CHECKS, Check, Site, define_tasks
from tests.gateway.serving import SCOPED, TOKEN, serving


@pytest.fixture
def site(app: App) -> Iterator[Site]:
    define_tasks(app)
    with serving(app) as (url, _):
        yield Site(url, TOKEN, app, SCOPED)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_gateway_keeps_the_protocol(site: Site, check: Check) -> None:
    check(site)
