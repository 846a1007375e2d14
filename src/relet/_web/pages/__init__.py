"""The dashboard: page functions, which turn a `PageContext` into a `Page`, and their rendering.

`PAGES` maps paths to page functions; path parameters in braces are passed as keyword arguments. `answer` calls a page
function and turns its errors into error pages. `act` performs a confirmed action.
"""

from __future__ import annotations

from collections.abc import Callable

from .actions import ACTIONS, Outcome, act
from .audit import audit
from .chains import chain
from .confirm import CONFIRMATIONS, confirm
from .context import Page, PageContext
from .failures import failures
from .job import job
from .jobs import jobs
from .login import STYLE, refused, sign_in
from .overview import overview
from .queues import queues
from .render import STATIC, answer, fingerprint, problem, render, warm_up
from .schedules import schedule, schedules
from .targets import target, targets
from .workers import workers

PAGES: list[tuple[str, Callable[..., Page]]] = [
    ("/", overview),
    ("/queues", queues),
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
    "answer",
    "fingerprint",
    "problem",
    "refused",
    "render",
    "sign_in",
    "warm_up",
]
