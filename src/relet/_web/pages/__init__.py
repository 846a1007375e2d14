"""The dashboard: views, which are plain functions from a `View` to a `Page`, and what renders them.

`PAGES` says which function answers which path; what stands in braces is passed on by name. `answer` calls one of them
and turns what is not there into a page that says so. `act` does what a confirmation asked about.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...errors import InvalidInput, JobNotFound, ScheduleNotFound
from .actions import DEEDS, Outcome, act
from .audit import audit
from .chains import chain
from .confirm import QUESTIONS, confirm
from .context import NotThere, Page, View
from .failures import failures
from .job import job, missing
from .jobs import jobs
from .login import STYLE, refused, sign_in
from .overview import overview
from .queues import queues
from .render import STATIC, fingerprint, render, warm_up
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


def answer(function: Callable[..., Page], view: View, **parameters: Any) -> Page:
    """What a view says; a page with status 404 or 400 where there is nothing, or the question is wrong."""
    try:
        return function(view, **parameters)
    except (NotThere, JobNotFound, ScheduleNotFound) as error:
        return missing(error)
    except InvalidInput as error:
        return problem("That cannot be", str(error), status=400)


def problem(title: str, said: str, *, status: int) -> Page:
    """A page that says what went wrong."""
    return Page(title, "problem.html", {"said": said, "advice": ""}, status=status, live=False)


__all__ = [
    "DEEDS",
    "PAGES",
    "QUESTIONS",
    "STATIC",
    "STYLE",
    "Outcome",
    "Page",
    "View",
    "act",
    "answer",
    "fingerprint",
    "problem",
    "refused",
    "render",
    "sign_in",
    "warm_up",
]
