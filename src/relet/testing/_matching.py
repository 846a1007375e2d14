"""Compares stored jobs with the jobs that a test expects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._core import payload
from .._core.codecs import Encoded
from .._core.job import Job
from .._tasks.codec import plain_value
from .._tasks.task import ConfiguredTask

MAX_LISTED = 10


class Expected:
    """A job of a task with some arguments and options. Options that are not named do not matter."""

    def __init__(self, task: ConfiguredTask[Any, Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        self._name = task._task.name
        self._arguments = task._task.signature.name_arguments(args, kwargs)
        self._plain = {name: _as_json(value) for name, value in self._arguments.items()}
        self._options = {name: value for name, value in task._options.items() if name in COMPARED}

    def __str__(self) -> str:
        arguments = ", ".join(f"{name}={value!r}" for name, value in self._arguments.items())
        options = ", ".join(f"{name}={value!r}" for name, value in self._options.items())
        return f"{self._name}({arguments})" + (f" with {options}" if options else "")

    def differences(self, job: Job[Any]) -> list[str]:
        """The differences of this job, in words."""
        found = []
        arguments = job.payload
        if isinstance(arguments, Encoded):
            return [arguments.problem]
        for name, value in self._plain.items():
            if name not in arguments:
                found.append(f"{name} is not passed")
            elif arguments[name] != value:
                found.append(f"{name} is {arguments[name]!r}, not {value!r}")
        for name, value in self._options.items():
            stored = getattr(job, name)
            if stored != value:
                found.append(f"{name} is {stored!r}, not {value!r}")
        return found

    def describe_missing(self, jobs: list[Job[Any]]) -> str:
        """Says that no such job is enqueued, and in what the jobs of the task differ."""
        if not jobs:
            return f"{self} is not enqueued, nor is any other job of {self._name}"
        lines = [f"{self} is not enqueued. Jobs of {self._name} that are:"]
        for job in jobs[:MAX_LISTED]:
            lines.append(f"  {job.id}: {'; '.join(self.differences(job))}")
        if len(jobs) > MAX_LISTED:
            lines.append(f"  and {len(jobs) - MAX_LISTED} more")
        return "\n".join(lines)


#: Options that a stored job shows as they were passed.
COMPARED = ("queue", "priority", "target", "group", "unique", "run_at", "max_attempts")


def _as_json(value: Any) -> Any:
    """A value as it comes back from a payload."""
    return payload.decode(payload.encode(value, path="expected", hook=plain_value))
