"""The options of `@app.task(...)` and `task.using(...)`, and their checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, Protocol, TypedDict, cast, get_args
from uuid import UUID

from msgspec import structs

from .._attempts.attempt import Attempt
from .._core import validate
from .._core.backoff import Backoff
from .._core.ids import parse_id
from .._core.job import Draft, FailedJob, FollowUp, Job, OnDependencyFailure, OnExpired, OnFailure, Policy, Replace
from .._core.validate import Seconds
from ..errors import InvalidInput

Exceptions = type[BaseException] | tuple[type[BaseException], ...]
RetryDelay = Callable[[Attempt, BaseException], Seconds | None]
OnDoubt = Literal["continue", "abort"]
OnShutdown = Literal["release", "pause"]
MAX_TAGS = 32
_A_FAILURE = FailedJob("", "", "", "", 1)
Reference = Job[Any] | Draft[Any] | str | UUID


class FollowUpTask(Protocol):
    """A task whose only argument is a `FailedJob`."""

    def draft(self, failure: FailedJob, /) -> Draft[Any]: ...


class TaskOptions(TypedDict, total=False):
    """The policy of a task: `@app.task(queue="billing", max_attempts=5)`."""

    name: str | None  # None: the function's name
    aliases: Sequence[str]  # earlier names, under which jobs may still wait
    queue: str
    priority: int
    max_attempts: int
    backoff: Backoff
    lease: Seconds | None  # None: the worker's
    timeout: Seconds | None
    retry_on: Exceptions | None  # None: every exception
    fail_on: Exceptions
    retry_delay: RetryDelay | None  # None: the backoff
    process: bool
    codec: str | None  # one of the app's codecs; None: values are stored as they are
    on_expired: OnExpired
    on_doubt: OnDoubt
    on_failure: OnFailure
    on_shutdown: OnShutdown
    on_dependency_failure: OnDependencyFailure
    follow_up: FollowUpTask | None  # enqueued when a job of this task has failed for good


class Defaults(TypedDict, total=False):
    """Options for all tasks of an app that do not set them: `App(defaults={"max_attempts": 10})`."""

    queue: str
    max_attempts: int
    backoff: Backoff
    lease: Seconds | None
    timeout: Seconds | None
    codec: str | None


class Options(TypedDict, total=False):
    """The options of one job: `task.using(target="acct-7", delay=60)`. None is the same as leaving an option out."""

    queue: str
    priority: int
    run_at: datetime | None
    delay: Seconds | None
    start_by: datetime | None
    target: str | None
    group: str | None
    tags: Sequence[str] | None
    unique: str | None
    unique_for: Seconds | None
    replace: Replace
    depends_on: Sequence[Reference] | None
    id: str | UUID | None
    connection: Any
    tenant: str | None
    max_attempts: int
    backoff: Backoff
    timeout: Seconds | None  # None: no timeout, even if the task has one
    on_expired: OnExpired
    on_failure: OnFailure
    on_dependency_failure: OnDependencyFailure
    follow_up: FollowUpTask | None


Check = Callable[[Any], Any]


def _word(kind: str, allowed: Any) -> Check:
    return lambda value: validate.one_of(kind, value, get_args(allowed))


def _seconds(kind: str, minimum: float, maximum: float = validate.MAX_SECONDS) -> Check:
    return lambda value: validate.seconds(kind, value, minimum=minimum, maximum=maximum)


def _or_none(check: Check) -> Check:
    return lambda value: None if value is None else check(value)


def _flag(value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise InvalidInput(f"process must be True or False, not {value!r}")


def _backoff(value: object) -> Backoff:
    if isinstance(value, Backoff):
        return value
    raise InvalidInput(f"backoff must be a Backoff, as in Backoff(base=1, max=60), not {value!r}")


def _aliases(value: object) -> tuple[str, ...]:
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        raise InvalidInput(f"aliases must be a list of names, not {value!r:.80}")
    return tuple(validate.name("an alias", one) for one in value)


def _exceptions(kind: str) -> Check:
    def check(value: object) -> tuple[type[BaseException], ...]:
        classes = value if isinstance(value, tuple) else (value,)
        for one in classes:
            if not (isinstance(one, type) and issubclass(one, BaseException)):
                raise InvalidInput(f"{kind} must be an exception class, or a tuple of them, not {value!r:.80}")
        return classes

    return check


def _retry_delay(value: object) -> RetryDelay:
    if callable(value):
        return cast(RetryDelay, value)
    raise InvalidInput(
        f"retry_delay must be a function of the attempt and the exception that returns seconds, not {value!r:.80}; "
        "for a fixed delay write backoff=Backoff(base=60, max=60, jitter=False)"
    )


def _depends_on(value: object) -> tuple[str, ...]:
    """The ids of the jobs to wait for, each once."""
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        raise InvalidInput(f"depends_on must be a list of jobs, drafts or ids, not {value!r:.80}")
    return tuple(dict.fromkeys(parse_id(item.id if isinstance(item, Job | Draft) else item) for item in value))


def _tags(value: object) -> tuple[str, ...]:
    if not isinstance(value, Sequence) or isinstance(value, str | bytes) or len(value) > MAX_TAGS:
        raise InvalidInput(f"tags must be a list of up to {MAX_TAGS} words, not {value!r:.80}")
    return tuple(sorted({validate.text("a tag", one) for one in value}))


def _group(value: object) -> str:
    group = validate.text("group", value)
    if group == "*":
        raise InvalidInput('a group cannot be "*", which stands for each of them where limits are set')
    return group


def _replace(value: object) -> Replace:
    if value in (True, False, "payload"):
        return value
    raise InvalidInput(f'replace must be True, False or "payload", not {value!r}')


def _follow_up(value: object) -> FollowUp:
    make = getattr(value, "_untraced_draft", None)
    if make is None:
        raise InvalidInput(f"follow_up must be a task, not {value!r:.80}")
    try:
        draft: Draft[Any] = make((_A_FAILURE,), {})
    except InvalidInput as error:
        hint = "it must take one argument, of type relet.types.FailedJob"
        raise InvalidInput(f"follow_up cannot be {value!r}: {hint} ({error})") from None
    (argument,) = draft.payload
    return FollowUp(draft.task, argument, draft.queue, draft.priority, draft.policy)


def _unchecked(value: Any) -> Any:
    return value


_ANY_LEVEL: dict[str, Check] = {
    "queue": lambda value: validate.name("queue", value),
    "priority": lambda value: validate.integer("priority", value, -100, 100),
    "max_attempts": lambda value: validate.integer("max_attempts", value, 1, 10_000),
    "backoff": _backoff,
    "timeout": _or_none(_seconds("timeout", 0.001)),
    "on_expired": _word("on_expired", OnExpired),
    "on_failure": _word("on_failure", OnFailure),
    "on_dependency_failure": _word("on_dependency_failure", OnDependencyFailure),
    "follow_up": _or_none(_follow_up),
}
_TASK: dict[str, Check] = {
    **_ANY_LEVEL,
    "name": _or_none(lambda value: validate.name("name", value)),
    "aliases": _aliases,
    # A lease below a second is useful only in tests.
    "lease": _or_none(_seconds("lease", 0.1, 86_400)),
    "retry_on": _or_none(_exceptions("retry_on")),
    "fail_on": _exceptions("fail_on"),
    "retry_delay": _or_none(_retry_delay),
    "process": _flag,
    "codec": _or_none(lambda value: validate.name("codec", value)),
    "on_doubt": _word("on_doubt", OnDoubt),
    "on_shutdown": _word("on_shutdown", OnShutdown),
}
_JOB: dict[str, Check] = {
    **_ANY_LEVEL,
    "run_at": lambda value: validate.timestamp("run_at", value),
    "delay": _seconds("delay", 0),
    "start_by": lambda value: validate.timestamp("start_by", value),
    "target": lambda value: validate.text("target", value),
    "group": _group,
    "tags": _tags,
    "unique": lambda value: validate.text("unique", value),
    "unique_for": _seconds("unique_for", 0.001),
    "replace": _replace,
    "depends_on": _depends_on,
    "id": parse_id,
    "connection": _unchecked,  # the client finds out which driver it belongs to
    "tenant": lambda value: validate.text("tenant", value),
}
#: The options to use in place of those of other job queues.
FOREIGN_OPTIONS = {
    "autoretry_for": "use retry_on=(SomeError, ...); without it, every exception is retried up to max_attempts",
    "dont_autoretry_for": "use fail_on=(SomeError, ...)",
    "throws": "use fail_on=(SomeError, ...)",
    "countdown": "use delay=, in seconds",
    "after": "use depends_on=[job, ...]",
    "eta": "use run_at=, a datetime with a timezone",
    "expires": "use start_by=, a datetime with a timezone",
    "job_id": "use id=, a UUIDv7 as new_id() makes them",
    "link_error": "use follow_up=task, which is enqueued when the job has failed for good",
    "max_retries": "use max_attempts=, which counts the first attempt: retries + 1",
    "queue_name": "use queue=",
    "retries": "use max_attempts=, which counts the first attempt: retries + 1",
    "retry_backoff": "use backoff=Backoff(base=..., max=...)",
    "retry_when": "use retry_on=(SomeError, ...)",
    "run_after": "use run_at=, a datetime with a timezone, or delay=, in seconds",
    "schedule_at": "use run_at=, a datetime with a timezone",
    "schedule_in": "use delay=, in seconds",
    "task_id": "use id=, a UUIDv7 as new_id() makes them",
    "time_limit": "use timeout=, in seconds",
}
POLICY_OPTIONS = frozenset(field.name for field in structs.fields(Policy))


def check_task(options: Mapping[str, Any]) -> dict[str, Any]:
    """Check the options of a task."""
    return _checked("@app.task", options, _TASK)


def check_defaults(options: Mapping[str, Any]) -> dict[str, Any]:
    """Check the defaults of an app."""
    return _checked("App(defaults=...)", options, {name: _TASK[name] for name in Defaults.__annotations__})


def check_job(task: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Check the options of a job, each by itself and against the others."""
    passed = {name: value for name, value in options.items() if value is not None or name in _ANY_LEVEL}
    checked = _checked(f"{task}.using()", passed, _JOB)
    if not checked.get("delay"):
        checked.pop("delay", None)  # 0 means no delay
    if "delay" in checked and "run_at" in checked:
        raise InvalidInput(f"{task}.using(): run_at says when and delay says in how long; pass one of them")
    if "start_by" in checked and checked["start_by"] <= checked.get("run_at", 0.0):
        raise InvalidInput(f"{task}.using(): start_by must be later than run_at")
    if "unique_for" in checked and "unique" not in checked:
        raise InvalidInput(f"{task}.using(): unique_for is the window of a unique key; pass unique as well")
    if checked.get("replace") and "unique" not in checked:
        raise InvalidInput(f"{task}.using(): replace is for the job that has the unique key; pass unique as well")
    if checked.get("replace") and checked.get("depends_on"):
        raise InvalidInput(
            f"{task}.using(): replace and depends_on cannot be combined: a job with dependencies is not replaced"
        )
    if checked.get("id") in checked.get("depends_on", ()):
        raise InvalidInput(f"{task}.using(): a job cannot wait for itself")
    return checked


def policy_from(base: Policy, checked: Mapping[str, Any]) -> Policy:
    """A copy of a policy, changed by those of the checked options that belong to it."""
    changes = {name: value for name, value in checked.items() if name in POLICY_OPTIONS}
    return structs.replace(base, **changes) if changes else base


def _checked(where: str, options: Mapping[str, Any], checks: Mapping[str, Check]) -> dict[str, Any]:
    unknown = sorted(options.keys() - checks.keys())
    if unknown:
        hints = [f"{name}: {FOREIGN_OPTIONS[name]}" for name in unknown if name in FOREIGN_OPTIONS]
        advice = "; ".join(hints) or f"there are {', '.join(sorted(checks))}"
        raise InvalidInput(f"{where} has no option {', '.join(unknown)}; {advice}")
    try:
        return {name: checks[name](value) for name, value in options.items()}
    except InvalidInput as error:
        raise InvalidInput(f"{where}: {error}") from None
