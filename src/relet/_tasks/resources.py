"""Resources: values that a process makes once, for all handlers that take them; and which of them a process needs.

`@app.resource` declares a function that returns or yields such a value. Handlers and other resources receive it by a
parameter with the annotation of the value. A function whose value is None is a hook: it runs when a worker starts, and
the rest of it, after the `yield`, when the worker stops.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, contextmanager
from functools import cached_property
from inspect import formatannotation
from typing import Any, TypeVar

from ..errors import InvalidInput
from .codec import TaskCodec, resolve, signature_of

Function = Callable[..., Any]
Context = AbstractContextManager[Any] | AbstractAsyncContextManager[Any]
F = TypeVar("F", bound=Function)

_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_ANNOTATE = "annotate what it returns, as in `-> Pool` or, if it yields once, `-> Iterator[Pool]`; a hook has None"


class Resource:
    """A function that makes a value, or a hook. `around` returns a context manager, plain or async, with its value."""

    def __init__(self, function: Function) -> None:
        if not inspect.isfunction(function):
            raise InvalidInput(f"{function!r:.80} cannot be a resource: write @app.resource above `def` or `async def`")
        self._function = function
        self.name = function.__qualname__
        self._yields = inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)
        self.around = _as_context(function)
        self._signature = signature_of(function)
        if self._signature.return_annotation is inspect.Signature.empty:
            raise InvalidInput(f"{self}: {_ANNOTATE}")

    @cached_property
    def kind(self) -> Any:
        """The type of its value; None of a hook. Handlers ask for it by an equal annotation."""
        hint = resolve(self._function, str(self), self._signature.return_annotation)
        if self._yields:
            hint = next(iter(typing.get_args(hint)), Any)
        if hint is Any or not _is_hashable(hint):
            raise InvalidInput(f"{self}: {_ANNOTATE}")
        return None if hint is type(None) else hint

    @cached_property
    def takes(self) -> Mapping[str, Any]:
        """The types of its parameters, all of which are values of other resources."""
        parameters = self._signature.parameters.values()
        if any(one.kind in _VARIADIC or one.kind is one.POSITIONAL_ONLY for one in parameters):
            raise InvalidInput(f"{self}: every parameter is a resource, `name: Type`; it has others")
        return {one.name: resolve(self._function, f"{self}, {one.name}", one.annotation) for one in parameters}

    def __str__(self) -> str:
        code = inspect.unwrap(self._function).__code__
        return f"resource {self.name} ({code.co_filename}:{code.co_firstlineno})"


class Resources:
    """The resources of an app, in the order of their declaration. A process makes them in this order."""

    def __init__(self) -> None:
        self._declared: list[Resource] = []

    def __bool__(self) -> bool:
        return bool(self._declared)

    def add(self, function: Function) -> None:
        self._declared.append(Resource(function))

    def for_worker(self, tasks: Iterable[TaskCodec], tasks_of_children: Iterable[TaskCodec]) -> list[Resource]:
        """Those that a worker makes: all but those that only its child processes need. Raises InvalidInput."""
        own, others = list(tasks), list(tasks_of_children)
        everything = self._ordered(self._declared)
        self._refuse_stored([*own, *others])
        only_in_children = set(self._needed(others)) - set(self._needed(own))
        return self._ordered(one for one in everything if one not in only_in_children)

    def for_child(self, task: TaskCodec) -> list[Resource]:
        """Those that a child process has to make before it runs this task: all hooks, and the resources of the task."""
        hooks = (one for one in self._declared if one.kind is None)
        return self._ordered([*hooks, *self._needed([task])])

    def for_test(self, task: TaskCodec, overridden: Collection[Any]) -> list[Resource]:
        """Those that a test has to make before it runs this task. No hooks: they are for processes, not for jobs."""
        return self._needed([task], overridden)

    def _needed(self, tasks: Iterable[TaskCodec], overridden: Collection[Any] = ()) -> list[Resource]:
        wanted = {
            kind: f"task {task.task} takes {name}: {formatannotation(kind)}"
            for task in tasks
            for name, kind in task.resources.items()
        }
        providers = [self._provider(kind, why) for kind, why in wanted.items() if kind not in overridden]
        return self._ordered(providers, overridden)

    def _ordered(self, wanted: Iterable[Resource], overridden: Collection[Any] = ()) -> list[Resource]:
        """These resources, each after those that it takes."""
        ordered: dict[Resource, None] = {}
        for one in wanted:
            self._add_after_taken(one, ordered, (), overridden)
        return list(ordered)

    def _add_after_taken(
        self, one: Resource, ordered: dict[Resource, None], path: tuple[Resource, ...], overridden: Collection[Any]
    ) -> None:
        if one in ordered:
            return
        if one in path:
            cycle = " takes ".join(resource.name for resource in (*path[path.index(one) :], one))
            raise InvalidInput(f"resources take each other, so that none can be made first: {cycle}")
        for name, kind in one.takes.items():
            if kind not in overridden:
                taken = self._provider(kind, f"{one} takes {name}: {formatannotation(kind)}")
                self._add_after_taken(taken, ordered, (*path, one), overridden)
        ordered[one] = None

    def _provider(self, kind: Any, why: str) -> Resource:
        found = self._by_kind().get(kind) if _is_hashable(kind) else None
        if found is None:
            known = ", ".join(formatannotation(one) for one in self._by_kind()) or "none"
            raise InvalidInput(
                f"{why}, but no resource has this type: write @app.resource above a function that returns or yields "
                f"it. Types of resources: {known}"
            )
        return found

    def _by_kind(self) -> dict[Any, Resource]:
        found: dict[Any, Resource] = {}
        for one in self._declared:
            if one.kind is not None and found.setdefault(one.kind, one) is not one:
                kind = formatannotation(one.kind)
                raise InvalidInput(
                    f"{found[one.kind]} and {one} both have the type {kind}, so that a handler could get either; "
                    f"annotate one of them and its parameters with a NewType, or with Annotated[{kind}, ...]"
                )
        return found

    def _refuse_stored(self, tasks: Iterable[TaskCodec]) -> None:
        """A caller would have to pass a value that is meant to come from a resource."""
        kinds = self._by_kind()
        for task in tasks:
            for name in task.stored_as(kinds):
                raise InvalidInput(
                    f"task {task.task} takes {name} from its payload, but its type is that of a resource; write "
                    f"`= injected` after its annotation to receive the resource, or give the resource another type"
                )


def _is_hashable(kind: Any) -> bool:
    try:
        hash(kind)
    except TypeError:  # of the second argument of `Annotated`, for example
        return False
    return True


def _as_context(function: Function) -> Callable[..., Context]:
    if inspect.isasyncgenfunction(function):
        return asynccontextmanager(function)
    if inspect.isgeneratorfunction(function):
        return contextmanager(function)

    @contextmanager
    def called(**values: Any) -> Iterator[Any]:
        yield function(**values)

    @asynccontextmanager
    async def awaited(**values: Any) -> AsyncIterator[Any]:
        yield await function(**values)

    return awaited if inspect.iscoroutinefunction(function) else called
