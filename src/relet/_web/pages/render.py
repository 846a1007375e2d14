"""From a page to a document. Everything is escaped unless a drawing of ours made it."""

from __future__ import annotations

import hashlib
from datetime import datetime
from functools import cache, partial
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from . import formatting
from .context import Page, View

FOLDER = Path(__file__).parent.parent
STATIC = FOLDER / "static"

NAVIGATION = (
    # path, title, letter that goes there after g
    ("/", "Overview", "o"),
    ("/queues", "Queues", "q"),
    ("/jobs", "Jobs", "j"),
    ("/targets", "Targets", "t"),
    ("/workers", "Workers", "w"),
    ("/schedules", "Schedules", "s"),
    ("/failures", "Failures", "f"),
    ("/audit", "Audit", "a"),
)


def render(page: Page, view: View, *, only_main: bool = False) -> str:
    """The whole document, or the inside of its <main> alone, which is what live pages are sent.

    The script of a live page lets its times run on. What is sent has moments instead of "3 s ago", so that it differs
    from what was sent before only if something has happened.
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
    """Jinja, with the words of this package as filters."""
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
        made.get_template(name)  # compiled now, and kept
    return made


def warm_up() -> None:
    """Else the first who looks waits for the templates to be compiled."""
    environment()


@cache
def fingerprint() -> str:
    """Changes with the stylesheet and the script, so that browsers may keep them for ever."""
    kept = sorted(STATIC.glob("*"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in kept)).hexdigest()[:12]


def _iso(moment: datetime | Any) -> str:
    return moment.isoformat(timespec="milliseconds") if isinstance(moment, datetime) else ""
