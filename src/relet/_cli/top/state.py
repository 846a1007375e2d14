"""What is selected, what was asked, and what each key means. No terminal and no database in it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from ..._client.client import Client
from ..._core.job import Job
from .poller import Do, Message, Snapshot, Watched

TABLES = ("queues", "workers", "running", "failed")
PAGE = 10


@dataclass(frozen=True)
class Question:
    """Something to be done, once it was agreed to."""

    text: str
    do: Do


class Desk:
    """One person looking. Keys go in, and what was asked for comes out."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.focus = 0
        self.filter = ""
        self.typing: str | None = None  # the filter while it is being typed
        self.question: Question | None = None
        self.said: Message | None = None
        self.down_since: datetime | None = None
        self.watched: Watched | None = None
        self.scrolled = 0  # lines of what is watched
        self._chosen: dict[str, str] = {}  # the key of the line that is selected in each table
        self._asked: list[Do] = []

    # What there is to draw

    @property
    def table(self) -> str:
        """The table that keys go to."""
        return TABLES[self.focus]

    def lines(self, table: str) -> list[Any]:
        """What the filter lets through."""
        found: list[Any] = getattr(self.snapshot, table)
        wanted = (self.filter if self.typing is None else self.typing).lower()
        return [one for one in found if wanted in _text(one).lower()] if wanted else found

    def chosen(self, table: str) -> int | None:
        """Which line of a table is selected. It stays with what it is, wherever that moves."""
        keys = [key_of(one) for one in self.lines(table)]
        if not keys:
            return None
        key = self._chosen.get(table)
        return keys.index(key) if key in keys else 0

    def hear(self, news: Snapshot | Message) -> None:
        """What the feed has found."""
        if isinstance(news, Snapshot):
            self.snapshot = news
            if self.down_since is not None:
                self.down_since, self.said = None, None
        else:
            self.said = news
            if news.down and self.down_since is None:
                self.down_since = datetime.now(UTC)

    def take_asked(self) -> list[Do]:
        """What is to be done, each once."""
        asked, self._asked = self._asked, []
        return asked

    # Keys

    def press(self, key: str) -> Literal["quit"] | None:
        """One key."""
        if self.question is not None:
            self._answer(key)
        elif self.typing is not None:
            self._type(key)
        elif key in ("q", "Q"):
            return "quit"
        elif self.watched is not None and key in ("esc", "enter", "left", "backspace"):
            self.watched = None
        elif self.watched is not None and key in MOVES:
            self.scrolled = max(0, self.scrolled + MOVES[key])
        else:
            self._press(key)
        return None

    def _press(self, key: str) -> None:
        self.said = None if self.down_since is None else self.said
        if key in ("tab", "right") and self.watched is None:
            self.focus = (self.focus + 1) % len(TABLES)
        elif key in ("back-tab", "left") and self.watched is None:
            self.focus = (self.focus - 1) % len(TABLES)
        elif key in MOVES:
            self._move(MOVES[key])
        elif key == "/" and self.watched is None:
            self.typing = self.filter
        elif key == "esc":
            self.filter = ""
        elif key in ("enter", "p", "c", "r"):
            self._act(key)

    def _move(self, by: int) -> None:
        lines, at = self.lines(self.table), self.chosen(self.table)
        if at is not None:
            self._chosen[self.table] = key_of(lines[min(max(at + by, 0), len(lines) - 1)])

    def _type(self, key: str) -> None:
        if key == "enter":
            self.filter, self.typing = self.typing or "", None
        elif key == "esc":
            self.typing = None
        elif key == "backspace":
            self.typing = (self.typing or "")[:-1]
        elif len(key) == 1 and key.isprintable():
            self.typing = (self.typing or "") + key

    def _answer(self, key: str) -> None:
        question = self.question
        if key in ("y", "Y") and question is not None:
            self._asked.append(question.do)
            self.said = Message("...")
            self.question = None
        elif key in ("n", "N", "esc", "q", "enter"):
            self.said = Message("nothing was changed")
            self.question = None

    def _act(self, key: str) -> None:
        at = self.chosen(self.table)
        if at is None:
            return
        line = self.lines(self.table)[at]
        if key == "enter":
            self._chosen[self.table] = key_of(line)
            self.watched, self.scrolled = (self.table, key_of(line)), 0
            return
        question = _about_job(line, key) if isinstance(line, Job) else _about_queue(line, key, self.table)
        if question is None:
            self.said = Message(f"{key} does nothing here", bad=True)
        self.question = question


MOVES = {"up": -1, "k": -1, "down": 1, "j": 1, "page-up": -PAGE, "page-down": PAGE, "home": -(10**9), "end": 10**9}


def _about_job(job: Job[Any], key: str) -> Question | None:
    what = f"{job.task} {job.id}"

    def done(verb: str) -> Do:
        def do(client: Client) -> str:
            after: Job[Any] = getattr(client, verb)(job.id)
            asked = f", asked to {verb}" if after.request else ""
            return f"{what} is {after.state}{asked}"

        return do

    if key == "p" and job.state == "failed":
        return None
    if key == "p":
        return Question(f"pause {what}? it is asked to stop, and waits until it is resumed", done("pause"))
    if key == "c":
        how = "it is asked to end" if job.state == "running" else "it is over then"
        return Question(f"cancel {what}? {how}", done("cancel"))
    if job.state != "failed":
        return None
    return Question(f"let {what} go on? its attempts start anew", done("resume"))


def _about_queue(line: Any, key: str, table: str) -> Question | None:
    if table != "queues" or line.queue == "*":
        return None
    name: str = line.queue

    def toggle(client: Client) -> str:
        (client.resume_queue if line.paused else client.pause_queue)(name)
        return f"queue {name} is {'open again' if line.paused else 'paused'}"

    def resume_failed(client: Client) -> str:
        done = client.bulk("resume", state="failed", queue=name)
        return f"{done.done} jobs of queue {name} go on, {done.refused} were refused"

    if key == "p" and line.paused:
        return Question(f"resume queue {name}? workers claim from it again", toggle)
    if key == "p":
        return Question(f"pause queue {name}? nothing is claimed from it; what runs goes on", toggle)
    if key == "r" and line.failed:
        return Question(
            f"let all {line.failed} failed jobs of queue {name} go on? their attempts start anew", resume_failed
        )
    return None


def key_of(line: Any) -> str:
    """What a line is about, by a name that stays."""
    key: str = line.id if isinstance(line, Job) else getattr(line, "queue", None) or line.name
    return key


def _text(line: Any) -> str:
    if isinstance(line, Job):
        return " ".join(filter(None, (line.id, line.task, line.queue, line.target, line.worker, line.error)))
    return key_of(line)
