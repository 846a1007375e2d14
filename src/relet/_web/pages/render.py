"""Calls page functions and renders their pages to HTML. Everything is escaped except the markup of our own drawings."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import datetime
from functools import cache, partial
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from ...errors import InvalidInput, JobNotFound, ScheduleNotFound
from . import formatting
from .context import Page, PageContext, PageNotFound

FOLDER = Path(__file__).parent.parent
STATIC = FOLDER / "static"

NAVIGATION = (
    # path, title, keyboard shortcut after g
    ("/", "Overview", "o"),
    ("/queues", "Queues", "q"),
    ("/jobs", "Jobs", "j"),
    ("/targets", "Targets", "t"),
    ("/workers", "Workers", "w"),
    ("/schedules", "Schedules", "s"),
    ("/failures", "Failures", "f"),
    ("/audit", "Audit", "a"),
)


def answer(function: Callable[..., Page], view: PageContext, **parameters: Any) -> Page:
    """Call a page function. Errors become a page with status 404 (not found) or 400 (invalid input)."""
    try:
        return function(view, **parameters)
    except (PageNotFound, JobNotFound, ScheduleNotFound) as error:
        message = f"There is no job {', '.join(error.ids)}." if isinstance(error, JobNotFound) else str(error)
        return problem(
            "Not found", message, status=404, advice="It may have been deleted, or pruned after it finished."
        )
    except InvalidInput as error:
        return problem("Invalid request", str(error), status=400)


def problem(title: str, message: str, *, status: int, advice: str = "") -> Page:
    """A page that shows an error message."""
    return Page(title, "problem.html", {"message": message, "advice": advice}, status=status, live=False)


def render(page: Page, view: PageContext, *, only_main: bool = False) -> str:
    """The whole document, or with `only_main` the content of its <main> element, for live updates.

    Live updates contain timestamps instead of "3 s ago", so that an update differs from the one before only if
    something has happened. The script of the page formats them and keeps them current.
    """
    template = environment().get_template(page.template)
    context = {**page.context, "page": page, "view": view, "link": view.link, "navigation": NAVIGATION}
    context |= {
        "ago": formatting.clock if only_main else partial(formatting.ago, now=view.now),
        "fingerprint": fingerprint(),
    }
    return template.render(context, only_main=only_main)


@cache
def environment() -> Environment:
    """The Jinja environment, with the functions of `formatting` as filters."""
    made = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "line": formatting.one_line,
        "whole": formatting.whole,
        "middle": formatting.middle,
        "visible": formatting.visible,
        "number": formatting.number,
        "short": formatting.short_number,
        "capped": formatting.capped,
        "many": formatting.many,
        "duration": formatting.duration,
        "about": formatting.about,
        "clock": formatting.clock,
        "iso": _iso,
        "sentence": formatting.sentence,
    }
    for name in made.list_templates():
        made.get_template(name)  # compile it now; the environment caches it
    return made


def warm_up() -> None:
    """Compile the templates in advance, so that the first request does not wait for it."""
    environment()


@cache
def fingerprint() -> str:
    """A hash of the static files for their URLs, so that browsers may cache them forever."""
    files = sorted(STATIC.glob("*"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:12]


def _iso(moment: datetime | Any) -> str:
    return moment.isoformat(timespec="milliseconds") if isinstance(moment, datetime) else ""
