"""The dashboard: page functions, which turn a `PageContext` into a `Page`, and their rendering.

`PAGES` maps paths to page functions; path parameters in braces are passed as keyword arguments. `respond` calls a
page function and renders its page. `act` performs a confirmed action.
"""

from __future__ import annotations

from collections.abc import Callable

from .actions import ACTIONS, Outcome, act
from .audit import audit
from .chains import chain
from .confirm import CONFIRMATIONS, confirm
from .failures import failures
from .job import job
from .jobs import jobs
from .login import STYLE, refused, sign_in
from .overview import overview
from .page import STATIC, Page, PageContext, environment, render, respond
from .queues import queue, queues
from .schedules import schedule, schedules
from .targets import target, targets
from .workers import workers

PAGES: list[tuple[str, Callable[..., Page]]] = [
    ("/", overview),
    ("/queues", queues),
    ("/queues/{queue}", queue),
    ("/jobs", jobs),
    ("/jobs/{id}", job),
    ("/chains/{id}", chain),
    ("/targets", targets),
    ("/targets/{target}", target),
    ("/workers", workers),
    ("/schedules", schedules),
    ("/schedules/{name}", schedule),
    ("/failures", failures),
    ("/audit", audit),
    ("/confirm/{action}", confirm),
]

__all__ = [
    "ACTIONS",
    "CONFIRMATIONS",
    "PAGES",
    "STATIC",
    "STYLE",
    "Outcome",
    "Page",
    "PageContext",
    "act",
    "environment",
    "refused",
    "render",
    "respond",
    "sign_in",
]
