"""The input and output of page functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal
from urllib.parse import quote, urlencode

from ..._client.client import Client
from ..._tasks.task import Task

Role = Literal["read", "operate"]


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
    several: Mapping[str, Sequence[str]] = field(default_factory=dict)  # all values of each parameter
    tasks: Mapping[str, Task[..., Any]] = field(default_factory=dict)  # tasks that the user can enqueue
    message: str = ""  # the result of the previous action
    good: bool = True  # the previous action succeeded
    here: str = "/"  # the path and query string of this page, without the root

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
