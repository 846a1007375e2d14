"""The lines of JSON between a worker and its child processes.

They are apart from `child`, which imports modules that Windows does not have.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from .._core.job import Claimed, Outcome, Progress, Raised, Released, Snoozed, Succeeded


class Setup(msgspec.Struct):
    """The first line that the child reads."""

    path: list[str]  # sys.path
    main: str | None  # the file of the program, if that may define tasks itself
    log_level: str
    log_json: bool
    gateways: list[str] = []  # the URLs, if the worker reaches the store by these
    gateway_token: str = ""


class Command(msgspec.Struct, omit_defaults=True):
    """A line from the worker: run a job, take over a new deadline, abort the handler, or end."""

    module: str | None = None  # run a job: the module that defines its task
    job: Claimed | None = None
    tenant: str | None = None
    worker: str = ""
    token: str | None = None  # of the lease that a deadline or an abort concerns
    context: str | None = None  # the trace context for the handler, if the app is instrumented
    deadline: float | None = None  # of the lease, or, after a renewal, its new one
    abort: str | None = None  # the reason
    end: bool = False  # close the resources and exit: there are no more jobs


class Reply(msgspec.Struct, omit_defaults=True):
    """A line from the child: the handler begins, its progress, or the outcome of the attempt."""

    begun: bool = False
    completing: bool = False  # the handler is about to complete the job in its transaction
    progress: Progress | None = None
    kind: str | None = None  # a key of KINDS, with the outcome
    outcome: msgspec.Raw = msgspec.Raw()


KINDS: Mapping[str, type[Outcome]] = {kind.__name__: kind for kind in (Succeeded, Raised, Snoozed, Released)}
