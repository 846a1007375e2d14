"""An app that records what it is given, and a task or two: for the tests of tasks."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from relet._core.job import Claimed, Draft, Job, Policy, State
from relet._tasks.task import TaskRegistry

if TYPE_CHECKING:
    pass


NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
AN_ID = "0192f3a0-7c1e-7b3a-9d1f-2f6f5a1c0de1"
ANOTHER_ID = "0192f3a0-7c1e-7b3a-9d1f-2f6f5a1c0de2"


class Recorder:
    """A client that stores nothing and remembers what it was given."""

    def __init__(self) -> None:
        self.calls: list[tuple[Draft[Any], dict[str, Any]]] = []

    def enqueue(self, draft: Draft[Any], /, **where: Any) -> Job[Any]:
        self.calls.append((draft, where))
        return job_of(draft)


class AsyncRecorder(Recorder):
    async def enqueue(self, draft: Draft[Any], /, **where: Any) -> Job[Any]:  # type: ignore[override]
        return super().enqueue(draft, **where)


class App(TaskRegistry):
    """Tasks with two recording clients."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.recorder, self.async_recorder = Recorder(), AsyncRecorder()

    @property
    def client(self) -> Any:
        return self.recorder

    @property
    def aclient(self) -> Any:
        return self.async_recorder


def job_of(draft: Draft[Any]) -> Job[Any]:
    return Job(
        id=draft.id, task=draft.task, queue=draft.queue, state=State.QUEUED, priority=draft.priority,
        payload_json=draft.payload_json, attempt=0, max_attempts=4, losses=0, version=0, chain=draft.id, position=0,
        created_at=NOON, run_at=NOON,
    )  # fmt: skip


def claimed(version: int = 3) -> Claimed:
    return Claimed(
        id=AN_ID, token=ANOTHER_ID, version=version, task="charge", queue="default", payload_json="{}", priority=0,
        target=None, attempt=1, losses=0, policy=Policy(), chain=AN_ID, position=0, rank_and_seq=(0, 1), created_at=0.0,
        run_at=0.0, expires_at=30.0,
    )  # fmt: skip


def table(rows: Iterable[tuple[Any, ...]]) -> list[Any]:
    """Rows of a parametrized test, each named by its place and its last column."""
    return [pytest.param(*row, id=f"{number}-{row[-1]!s:.40}") for number, row in enumerate(rows)]


class Opaque:
    pass


@dataclass
class Box:
    inside: Any
    beside: list[Any] = field(default_factory=list)


class StructBox(msgspec.Struct):
    inside: Any
