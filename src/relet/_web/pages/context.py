"""What a view is given, and what it answers."""

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
class View:
    """Who asks, for what, and with what the answer is to be made."""

    client: Client
    query: Mapping[str, str]  # the parameters of the URL, limited in length
    role: Role
    who: str
    root: str  # before every link: the app may be mounted below /queue
    csrf: str
    redact: Callable[[str], str]  # of payloads and results as JSON text
    now: datetime
    several: Mapping[str, Sequence[str]] = field(default_factory=dict)  # parameters that are given more than once
    tasks: Mapping[str, Task[..., Any]] = field(default_factory=dict)  # what can be enqueued from here
    message: str = ""  # what came of the action before
    good: bool = True  # that action succeeded
    here: str = "/"  # the path and parameters asked for, without the root

    @property
    def may_act(self) -> bool:
        """Whether actions are shown at all."""
        return self.role == "operate"

    def link(self, path: str, /, **parameters: str | Sequence[str] | None) -> str:
        """The address of a page. What comes from a job goes into `parameters`; names have links below."""
        given = {name: value for name, value in parameters.items() if value}
        return self.root + path + (f"?{urlencode(given, doseq=True)}" if given else "")

    def target_link(self, target: str) -> str:
        """The address of a target's page."""
        return self._named("/targets", target)

    def schedule_link(self, name: str) -> str:
        """The address of a schedule's page."""
        return self._named("/schedules", name)

    def _named(self, path: str, name: str) -> str:
        # Browsers and proxies have ideas of their own about dots, and about slashes that are quoted.
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
    live: bool = True  # it is worth showing again when something has changed


class NotThere(Exception):
    """What the page would be about does not exist."""
