"""The gateway keeps the protocol, on every store."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from relet import App
from tests.gateway.conformance import CHECKS, Check, Site, define_tasks, requests_reach_the_worker
from tests.gateway.serving import SCOPED, TOKEN, serving


@pytest.fixture
def site(app: App) -> Iterator[Site]:
    define_tasks(app)
    with serving(app) as (url, _):
        yield Site(url, TOKEN, app, SCOPED)


def cases() -> list[Any]:
    """In the variant rows there are no notifications: a request reaches a worker with its next renewal."""
    waits: dict[Check, list[pytest.MarkDecorator]] = {requests_reach_the_worker: [pytest.mark.partitioned]}
    return [pytest.param(check, marks=waits.get(check, ()), id=check.__name__) for check in CHECKS]


@pytest.mark.parametrize("check", cases())
def test_the_gateway_keeps_the_protocol(site: Site, check: Check) -> None:
    check(site)
