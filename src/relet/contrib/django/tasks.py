"""Tasks of Django with options of Relet.

`relet.contrib.django.task` is `django.tasks.task` with types: it takes the same arguments, and the options of Relet.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Concatenate, Generic, Literal, ParamSpec, TypedDict, TypeVar, Unpack, overload
from uuid import UUID

from ..._core.backoff import Backoff
from ..._core.job import OnDependencyFailure, OnExpired, OnFailure, Replace
from ..._core.validate import Seconds
from ..._tasks.options import Exceptions, OnDoubt, OnShutdown, RetryDelay, check_job, check_task
from ...errors import InvalidInput
from . import framework

if TYPE_CHECKING:
    from ..._attempts.attempt import Attempt
    from .backend import ReletBackend

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

#: Options of Relet that belong to a task, and those that `using` may set for one job.
TASK_OPTIONS = ("aliases", "lease", "retry_on", "fail_on", "retry_delay", "codec", "on_doubt", "on_shutdown")
JOB_OPTIONS = (
    "max_attempts", "backoff", "timeout", "on_expired", "on_failure", "on_dependency_failure", "start_by", "target",
    "group", "tags", "unique", "unique_for", "replace", "depends_on",
)  # fmt: skip


class UsingOptions(TypedDict, total=False):
    """The options of `using`: those of Django, and those of Relet for one job. None leaves an option as it is."""

    priority: int | None
    queue_name: str | None
    run_after: datetime | None
    backend: str | None
    max_attempts: int | None
    backoff: Backoff | None
    timeout: Seconds | None
    on_expired: OnExpired | None
    on_failure: OnFailure | None
    on_dependency_failure: OnDependencyFailure | None
    start_by: datetime | None
    target: str | None
    group: str | None
    tags: Sequence[str] | None
    unique: str | None
    unique_for: Seconds | None
    replace: Replace | None
    depends_on: Sequence[TaskResult[Any] | str | UUID] | None


class DecoratorOptions(TypedDict, total=False):
    """The options of `task`: those of Django, and those of Relet."""

    priority: int
    queue_name: str
    backend: str
    atomic: bool
    max_attempts: int | None
    backoff: Backoff | None
    timeout: Seconds | None
    on_expired: OnExpired | None
    on_failure: OnFailure | None
    on_dependency_failure: OnDependencyFailure | None
    aliases: Sequence[str] | None
    lease: Seconds | None
    retry_on: Exceptions | None
    fail_on: Exceptions | None
    retry_delay: RetryDelay | None
    codec: str | None
    on_doubt: OnDoubt | None
    on_shutdown: OnShutdown | None


if TYPE_CHECKING:

    class TaskError:
        """The exception that ended an attempt."""

        exception_class_path: str
        traceback: str

        @property
        def exception_class(self) -> type[BaseException]: ...

    class TaskResult(Generic[R_co]):
        """`django.tasks.TaskResult`, with the type of its return value."""

        id: str
        task: ReletTask[..., R_co]
        status: str
        enqueued_at: datetime | None
        started_at: datetime | None
        finished_at: datetime | None
        last_attempted_at: datetime | None
        args: list[Any]
        kwargs: dict[str, Any]
        backend: str
        errors: list[TaskError]
        worker_ids: list[str]

        @property
        def return_value(self) -> R_co: ...
        @property
        def is_finished(self) -> bool: ...
        @property
        def attempts(self) -> int: ...
        def refresh(self) -> None: ...
        async def arefresh(self) -> None: ...

    class TaskContext:
        """`django.tasks.TaskContext`, and `relet`: the attempt, with its steps, progress and transactions."""

        task_result: TaskResult[Any]
        relet: Attempt

        @property
        def attempt(self) -> int: ...

    class ReletTask(Generic[P, R_co]):
        """`django.tasks.Task` with the types of its function."""

        func: Callable[..., Any]
        priority: int
        backend: str
        queue_name: str
        run_after: datetime | None
        takes_context: bool
        name: str
        module_path: str

        def using(self, **options: Unpack[UsingOptions]) -> ReletTask[P, R_co]: ...
        def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> TaskResult[R_co]: ...
        async def aenqueue(self, *args: P.args, **kwargs: P.kwargs) -> TaskResult[R_co]: ...
        def get_result(self, result_id: str) -> TaskResult[R_co]: ...
        async def aget_result(self, result_id: str) -> TaskResult[R_co]: ...
        def call(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...
        async def acall(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...
        def get_backend(self) -> ReletBackend: ...

else:
    TaskResult = framework.TaskResult

    @dataclass(frozen=True, slots=True, kw_only=True)
    class TaskContext(framework.TaskContext):
        """`django.tasks.TaskContext`, and `relet`: the attempt, with its steps, progress and transactions."""

        relet: Any

    @dataclass(frozen=True, slots=True, kw_only=True)
    class ReletTask(framework.Task):
        """`django.tasks.Task` with options of Relet; None: the default."""

        atomic: bool = False  # complete the job in one transaction with what the function writes
        max_attempts: Any = None
        backoff: Any = None
        timeout: Any = None
        on_expired: Any = None
        on_failure: Any = None
        on_dependency_failure: Any = None
        start_by: Any = None
        target: Any = None
        group: Any = None
        tags: Any = None
        unique: Any = None
        unique_for: Any = None
        replace: Any = None
        depends_on: Any = None
        aliases: Any = None
        lease: Any = None
        retry_on: Any = None
        fail_on: Any = None
        retry_delay: Any = None
        codec: Any = None
        on_doubt: Any = None
        on_shutdown: Any = None

        def using(self, **options):
            """The same task with other options for jobs that are enqueued through the returned object."""
            allowed = (*UsingOptions.__annotations__,)
            unknown = sorted(options.keys() - set(allowed))
            if unknown:
                raise TypeError(f"using() has no option {', '.join(unknown)}; there are {', '.join(allowed)}")
            return replace(self, **{name: value for name, value in options.items() if value is not None})


def options_of(task: Any, names: Sequence[str]) -> dict[str, Any]:
    """Those of the named options that a task sets. A task that was declared for another backend has none."""
    found = {name: getattr(task, name, None) for name in names}
    return {name: value for name, value in found.items() if value is not None}


def job_options(task: Any) -> dict[str, Any]:
    """The options of Relet for a job of this task."""
    options = options_of(task, JOB_OPTIONS)
    if "depends_on" in options:
        references = options["depends_on"]
        is_list = isinstance(references, Sequence) and not isinstance(references, str | bytes)
        options["depends_on"] = [getattr(one, "id", one) for one in references] if is_list else references
    return options


def check_options(task: Any) -> None:
    """Raise InvalidTask if an option of Relet is invalid."""
    try:
        check_task(options_of(task, TASK_OPTIONS))
        check_job(task.module_path, job_options(task))
        check_task({"name": task.module_path})
    except InvalidInput as error:
        raise framework.InvalidTask(str(error)) from None


@overload
def task(function: Callable[P, Coroutine[Any, Any, R]], /) -> ReletTask[P, R]: ...
@overload
def task(function: Callable[P, R], /) -> ReletTask[P, R]: ...
@overload
def task(*, takes_context: Literal[True], **options: Unpack[DecoratorOptions]) -> ContextDecorator: ...
@overload
def task(*, takes_context: Literal[False] = False, **options: Unpack[DecoratorOptions]) -> Decorator: ...
def task(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Make a function a task of Django: `@task`, or with options `@task(queue_name="mail", max_attempts=5)`.

    It takes the arguments of `django.tasks.task` and the options of Relet, with any version of Django.
    """

    def make(function: Callable[..., Any]) -> Any:
        create: Any = ReletTask  # whatever the backend: tests may replace it by one of Django's
        return create(func=function, **options)

    return make if function is None else make(function)


if TYPE_CHECKING:

    class Decorator:
        """The decorator that `task(...)` returns."""

        @overload
        def __call__(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> ReletTask[P, R]: ...
        @overload
        def __call__(self, function: Callable[P, R], /) -> ReletTask[P, R]: ...
        def __call__(self, function: Any, /) -> Any: ...

    class ContextDecorator:
        """The decorator that `task(takes_context=True, ...)` returns."""

        @overload
        def __call__(
            self, function: Callable[Concatenate[TaskContext, P], Coroutine[Any, Any, R]], /
        ) -> ReletTask[P, R]: ...
        @overload
        def __call__(self, function: Callable[Concatenate[TaskContext, P], R], /) -> ReletTask[P, R]: ...
        def __call__(self, function: Any, /) -> Any: ...
