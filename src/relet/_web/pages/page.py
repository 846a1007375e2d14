"""Pages of the dashboard: a page function gets a `PageContext` and returns a `Page`, which is rendered to HTML.

Everything is escaped except the markup of our own drawings.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from ..._client.client import Client
from ..._tasks.task import Task
from ...errors import InvalidInput, JobNotFound, ScheduleNotFound
from . import formatting

Role = Literal["read", "operate"]

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


@dataclass(frozen=True)
class PageContext:
    """A request to a page function: the user, the URL, and the client to read from."""

    client: Client
    query: Mapping[str, str]  # the parameters of the URL, limited in length
    role: Role
    who: str
    root: str  # prefix of every link: the app may be mounted below /queue
    csrf: str
    redact: Callable[[str], str]  # applied to payloads and results as JSON text
    now: datetime
    query_lists: Mapping[str, Sequence[str]] = field(default_factory=dict)  # all values of each parameter
    tasks: Mapping[str, Task[..., Any]] = field(default_factory=dict)  # tasks that the user can enqueue
    message: str = ""  # the result of the previous action
    succeeded: bool = True  # the previous action succeeded
    here: str = "/"  # the path and query string of this page, without the root
    app_path: str = "module:app"  # as the command line names the app
    source: Callable[[], str] = str  # a sentence about the replica that the page was read from; empty: there is none

    @property
    def may_act(self) -> bool:
        """True if the page offers actions."""
        return self.role == "operate"

    def link(self, path: str, /, **parameters: str | Sequence[str] | None) -> str:
        """The URL of a page. Text that comes from jobs goes into `parameters`, which are quoted."""
        query = {name: value for name, value in parameters.items() if value}
        return self.root + path + (f"?{urlencode(query, doseq=True)}" if query else "")

    def target_link(self, target: str) -> str:
        """The URL of a target's page."""
        return self._named("/targets", target)

    def schedule_link(self, name: str) -> str:
        """The URL of a schedule's page."""
        return self._named("/schedules", name)

    def queue_link(self, name: str) -> str:
        """The URL of a queue's page."""
        return self._named("/queues", name)

    def _named(self, path: str, name: str) -> str:
        # Browsers and proxies rewrite paths with dots, or with quoted slashes.
        if name.strip(".") == "" or "/" in name or "\\" in name:
            return self.link(path, name=name)
        return self.link(f"{path}/{quote(name, safe='')}")


@dataclass(frozen=True)
class Page:
    """A page before it is rendered."""

    title: str
    template: str
    context: Mapping[str, Any]
    status: int = 200
    live: bool = True  # refresh the page when its content changes


class PageNotFound(Exception):
    """The subject of the page does not exist."""


def local_path(back: str) -> str:
    """`back` if it is a path below our root, else the overview. Prevents redirects to other sites."""
    fine = back.startswith("/") and not back.startswith("//") and "\\" not in back and back.isprintable()
    return back if fine else "/"


def respond(
    function: Callable[..., Page], view: PageContext, parameters: Mapping[str, Any], *, only_main: bool = False
) -> tuple[Page, str]:
    """Call a page function and render its page. Errors become a page with status 404 (not found) or 400 (invalid)."""
    try:
        page = function(view, **parameters)
    except (PageNotFound, JobNotFound, ScheduleNotFound) as error:
        message = f"There is no job {', '.join(error.ids)}." if isinstance(error, JobNotFound) else str(error)
        page = problem("Not found", message, 404, "It may have been deleted, or pruned after it finished.")
    except InvalidInput as error:
        page = problem("Invalid request", str(error), 400)
    return page, render(page, view, only_main=only_main)


def problem(title: str, message: str, status: int, advice: str = "") -> Page:
    """A page that shows an error message."""
    return Page(title, "problem.html", {"message": message, "advice": advice}, status=status, live=False)


def render(page: Page, view: PageContext, *, only_main: bool = False) -> str:
    """The whole document, or with `only_main` the content of its <main> element, for live updates.

    Live updates contain timestamps instead of "3 s ago", so that an update differs from the one before only if
    something has happened. The script of the page formats them and keeps them current.
    """
    template = environment().get_template(page.template)
    ago = formatting.clock if only_main else partial(formatting.ago, now=view.now)
    context = {**page.context, "page": page, "view": view, "link": view.link, "navigation": NAVIGATION}
    return template.render(context, ago=ago, fingerprint=fingerprint(), only_main=only_main)


@cache
def environment() -> Environment:
    """The Jinja environment, with the functions of `formatting` as filters."""
    environment = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "line": formatting.visible_line,
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
        "iso": formatting.iso,
        "pretty": formatting.pretty,
        "sentence": formatting.sentence,
    }
    for name in environment.list_templates():
        environment.get_template(name)  # compile it now; the environment caches it
    return environment


@cache
def fingerprint() -> str:
    """A hash of the static files for their URLs, so that browsers may cache them forever."""
    files = sorted(STATIC.glob("*"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:12]
