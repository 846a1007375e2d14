"""Where those attach that follow jobs from where they are enqueued to where they run: `app.telemetry`.

An app has none unless it is instrumented, which then costs a look at an attribute. Whoever implements this must not
raise: no job is to fail because of those who watch it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from .._attempts.attempt import Attempt
from .._core.job import Draft, Job, Outcome

Stored = Callable[[Sequence[Job[Any]]], object]


class Watch(Protocol):
    """Watches one attempt."""

    def handed_over(self) -> str | None:
        """The context that the handler is to run in, where that is another process."""
        ...

    def ended(self, outcome: Outcome) -> None:
        """What the attempt came to; what the handler raised is in `attempt._error`."""
        ...


class Telemetry(Protocol):
    """Follows jobs."""

    def created(self, draft: Draft[Any], /) -> None:
        """A draft was made, to be stored by whoever asked for it: give it its context."""
        ...

    def sending(self, drafts: Sequence[Draft[Any]], /) -> AbstractContextManager[Stored]:
        """Around the storing of drafts; those that have no context yet are given one. It is to be told the jobs."""
        ...

    def running(self, attempt: Attempt, /, within: str | None = None) -> AbstractContextManager[Watch]:
        """Around an attempt. `within`: what was handed over by the worker, who watches as well."""
        ...


_NOBODY: AbstractContextManager[Stored] = nullcontext(lambda jobs: None)


def sending(telemetry: Telemetry | None, drafts: Sequence[Draft[Any]]) -> AbstractContextManager[Stored]:
    """Around the storing of drafts, if anybody watches."""
    return _NOBODY if telemetry is None or not drafts else telemetry.sending(drafts)
