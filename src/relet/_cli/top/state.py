"""The selection, the open question and the meaning of each key. Uses no terminal and no database."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from ..._client.client import Client
from ..._core.job import Job
from .poller import Action, Message, Snapshot, Watched

TABLES = ("queues", "workers", "running", "failed")
PAGE = 10


@dataclass(frozen=True)
class Question:
    """An action that waits for confirmation."""

    text: str
    action: Action


class TopState:
    """The state of `relet top`. Keys and updates go in; actions come out."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.focus = 0
        self.filter = ""
        self.typing: str | None = None  # the filter while the user types it
        self.question: Question | None = None
        self.message: Message | None = None
        self.down_since: datetime | None = None
        self.watched: Watched | None = None
        self.scrolled = 0  # lines of the details
        self._chosen: dict[str, str] = {}  # the key of the selected line of each table
        self._actions: list[Action] = []

    # For drawing

    @property
    def table(self) -> str:
        """The table that has the focus."""
        return TABLES[self.focus]

    def lines(self, table: str) -> list[Any]:
        """The lines of a table that match the filter."""
        found: list[Any] = getattr(self.snapshot, table)
        wanted = (self.filter if self.typing is None else self.typing).lower()
        return [one for one in found if wanted in _text(one).lower()] if wanted else found

    def chosen(self, table: str) -> int | None:
        """The index of the selected line of a table. The selection follows its line when that moves."""
        keys = [key_of(one) for one in self.lines(table)]
        if not keys:
            return None
        key = self._chosen.get(table)
        return keys.index(key) if key in keys else 0

    def update(self, update: Snapshot | Message) -> None:
        """Take an update of the poller."""
        if isinstance(update, Snapshot):
            self.snapshot = update
            if self.down_since is not None:
                self.down_since, self.message = None, None
        else:
            self.message = update
            if update.down and self.down_since is None:
                self.down_since = datetime.now(UTC)

    def take_actions(self) -> list[Action]:
        """The confirmed actions, each once."""
        actions, self._actions = self._actions, []
        return actions

    # Keys

    def press(self, key: str) -> Literal["quit"] | None:
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
        self.message = None if self.down_since is None else self.message
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
        lines, index = self.lines(self.table), self.chosen(self.table)
        if index is not None:
            self._chosen[self.table] = key_of(lines[min(max(index + by, 0), len(lines) - 1)])

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
            self._actions.append(question.action)
            self.message = Message("...")
            self.question = None
        elif key in ("n", "N", "esc", "q", "enter"):
            self.message = Message("Nothing was changed.")
            self.question = None

    def _act(self, key: str) -> None:
        index = self.chosen(self.table)
        if index is None:
            return
        line = self.lines(self.table)[index]
        if key == "enter":
            self._chosen[self.table] = key_of(line)
            self.watched, self.scrolled = (self.table, key_of(line)), 0
            return
        question = _about_job(line, key) if isinstance(line, Job) else _about_queue(line, key, self.table)
        if question is None:
            self.message = Message(f"Key {key} does nothing here.", bad=True)
        self.question = question


MOVES = {"up": -1, "k": -1, "down": 1, "j": 1, "page-up": -PAGE, "page-down": PAGE, "home": -(10**9), "end": 10**9}


def _about_job(job: Job[Any], key: str) -> Question | None:
    what = f"{job.task} {job.id}"

    def calling(verb: str) -> Action:
        def action(client: Client) -> str:
            after: Job[Any] = getattr(client, verb)(job.id)
            request = f", asked to {verb}" if after.request else ""
            return f"{what} is {after.state}{request}"

        return action

    if key == "p" and job.state == "failed":
        return None
    if key == "p":
        return Question(f"Pause {what}? It is asked to stop until it is resumed.", calling("pause"))
    if key == "c":
        effect = "It is asked to stop." if job.state == "running" else "It ends as cancelled."
        return Question(f"Cancel {what}? {effect}", calling("cancel"))
    if job.state != "failed":
        return None
    return Question(f"Resume {what}? Its attempts start anew.", calling("resume"))


def _about_queue(line: Any, key: str, table: str) -> Question | None:
    if table != "queues" or line.queue == "*":
        return None
    name: str = line.queue

    def toggle(client: Client) -> str:
        (client.resume_queue if line.paused else client.pause_queue)(name)
        return f"Queue {name} is {'resumed' if line.paused else 'paused'}."

    def resume_failed(client: Client) -> str:
        result = client.bulk("resume", state="failed", queue=name)
        return f"Resumed {result.done} jobs of queue {name}, {result.refused} refused."

    if key == "p" and line.paused:
        return Question(f"Resume queue {name}? Workers claim from it again.", toggle)
    if key == "p":
        return Question(f"Pause queue {name}? Workers stop claiming; running jobs continue.", toggle)
    if key == "r" and line.failed:
        text = f"Resume all {line.failed} failed jobs of queue {name}? Their attempts start anew."
        return Question(text, resume_failed)
    return None


def key_of(line: Any) -> str:
    """The name or ID of a line, which stays the same across snapshots."""
    key: str = line.id if isinstance(line, Job) else getattr(line, "queue", None) or line.name
    return key


def _text(line: Any) -> str:
    if isinstance(line, Job):
        return " ".join(filter(None, (line.id, line.task, line.queue, line.target, line.worker, line.error)))
    return key_of(line)
