"""Converts the arguments of a call to a payload and back, and results likewise.

A payload is a JSON object keyed by parameter name. `*args` is a list and `**kwargs` an object under its own name.
Defaults are not stored, so that they can be changed while jobs wait. Enqueue decodes each payload with the decoder that
the worker will use, and refuses arguments that the worker could not read, before anything is stored.

Annotations are resolved when the function is decorated. If one names something that the module defines further down, it
is resolved at the first use instead, which raises the same error if the name is still undefined.

The worker fills in two kinds of parameters, which are no part of the payload: the attempt, which is the first parameter
and annotated `Attempt`, and resources, whose default is `injected` and whose annotation says which.
"""

from __future__ import annotations

import inspect
import re
import sys
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import date, time
from functools import cached_property
from inspect import formatannotation
from operator import methodcaller
from typing import Any, NamedTuple, NoReturn

import msgspec
import msgspec.inspect
from msgspec.structs import astuple

from .._attempts.attempt import Attempt
from .._core import payload, validate
from ..errors import InvalidArguments, InvalidInput, InvalidPayload
from .roundtrip import difference

Function = Callable[..., Any]

_VAR_POSITIONAL, _VAR_KEYWORD = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
_VARIADIC = (_VAR_POSITIONAL, _VAR_KEYWORD)
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD, _VAR_POSITIONAL)
_LATER = (NameError, AttributeError)  # raised by an annotation that names something not defined yet
_DECODE_ERROR = re.compile(r"(?s)(?P<problem>.*?)(?: - at (?:`key` in )?`\$(?P<rest>.*)`)?")
_BASES: dict[type, Callable[[Any], Any]] = {
    str: str.__str__,
    int: int.__int__,
    float: float.__float__,
    date: methodcaller("isoformat"),
    time: methodcaller("isoformat"),
}
_CONVERTIBLE = (
    "JSON values, dataclasses, TypedDicts, NamedTuples, datetimes, UUIDs, Decimals, Enums, containers of these, "
    "and pydantic models can be converted"
)

_INJECT = "; a parameter that the worker fills in with a resource has the default `injected`"
_ANNOTATE = "annotate it with its type, or pass a JSON value"


class Injected:
    """The default of a parameter that the worker fills in with a resource: `def send(to: str, pool: Pool = injected)`.

    The annotation says which: that of the value that a function under `@app.resource` returns or yields.
    """

    def __repr__(self) -> str:
        return "injected"

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(
            f"a worker fills in this parameter with a resource; in a call of your own, pass it, to have its .{name}"
        )


injected: Any = Injected()


class _Codec(NamedTuple):
    """The decoders of one task, built once."""

    arguments: msgspec.json.Decoder[Any]
    result: msgspec.json.Decoder[Any]


class TaskCodec:
    """The signature of one task, and the conversion of its arguments and results to JSON and back."""

    def __init__(self, name: str | None, function: Function) -> None:
        _check_function(function)
        self.task = name or validate.name("a task's name (give name=)", function.__name__)
        self._function = function
        whole = signature_of(function)
        parameters = list(whole.parameters.values())
        self.takes_attempt = bool(parameters) and self._is_attempt(parameters[0])
        rest = parameters[self.takes_attempt :]
        self._injected = {one.name: one for one in rest if one.default is injected}
        self.takes_resources = bool(self._injected)
        self._check_injected(rest)
        self._signature = whole.replace(parameters=[one for one in rest if one.name not in self._injected])
        self._classify_parameters()
        with suppress(_Unresolved):  # perhaps it is defined further down: the first use tries again
            self._codec  # noqa: B018 - raises now if an annotation cannot be converted, not at the first use

    def encode(self, args: tuple[Any, ...], kwargs: Mapping[str, Any], limit: int = payload.MAX_BYTES) -> str:
        """The payload of a call. Raises InvalidArguments or InvalidPayload."""
        decoder = self._codec.arguments
        arguments = self._bind(args, kwargs)
        try:
            plain = payload.is_plain(arguments)
            text = payload.encode(arguments, path=self.task, limit=limit, hook=plain_value, plain=plain)
        except InvalidPayload as error:
            raise InvalidPayload(self._location(error.path[len(self.task) :]), error.problem) from None
        try:
            decoded = decoder.decode(text)
        except msgspec.ValidationError as error:
            raise InvalidArguments(self._message(error)) from None
        if not plain:
            self._check_round_trip(arguments, decoded)
        return text

    def _check_round_trip(self, arguments: Mapping[str, Any], decoded: Any) -> None:
        back = dict(zip(self._signature.parameters, astuple(decoded), strict=True))
        for name, value in arguments.items():
            found = difference(value, back[name], f".{name}")
            if found is not None:
                raise InvalidPayload(self._location(found.path), f"{found.problem}; {_ANNOTATE}")

    def decode(self, text: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of a stored payload, converted to the annotated types. Raises InvalidArguments."""
        try:
            values: tuple[Any, ...] = astuple(self._codec.arguments.decode(text))
        except msgspec.DecodeError as error:
            raise InvalidArguments(self._difference(text, error)) from None
        except RecursionError:
            raise InvalidArguments(f"{self.task}(): the stored payload is nested too deep") from None
        if self._all_positional and (self._all_required or not any(value is msgspec.UNSET for value in values)):
            return values, {}  # the usual case, without BoundArguments
        named = zip(self._signature.parameters, values, strict=True)
        bound = inspect.BoundArguments(
            self._signature, {name: value for name, value in named if value is not msgspec.UNSET}
        )
        return bound.args, bound.kwargs

    def call_of(self, values: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The call that makes this payload, with unconverted values. Raises InvalidArguments if it does not fit."""
        unknown = [name for name in values if name not in self._known]
        if unknown:
            has = f"it has {', '.join(self._signature.parameters)}" if self._known else "it has none"
            raise InvalidArguments(
                f"{self._location(f'.{unknown[0]}')}: {unknown[0]!r:.80} is no parameter of this task; {has}"
            )
        arguments = {name: values[name] for name in self._signature.parameters if name in values}
        for parameter in [self._signature.parameters[name] for name in arguments]:
            kind = list if parameter.kind is _VAR_POSITIONAL else dict
            if parameter.kind in _VARIADIC and not isinstance(arguments[parameter.name], kind):
                expected = "a list" if kind is list else "an object"
                raise InvalidArguments(f"{self._location(f'.{parameter.name}')}: must be {expected}")
        bound = inspect.BoundArguments(self._signature, arguments)
        return bound.args, bound.kwargs

    def name_arguments(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """These arguments by name. They may be some of those that a call needs. Raises InvalidArguments."""
        try:
            arguments = self._signature.bind_partial(*args, **kwargs).arguments
        except TypeError as error:
            raise InvalidArguments(f"{self.task}() {error}") from None
        return {name: list(value) if name == self._variadic else value for name, value in arguments.items()}

    def schemas(self) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
        """The JSON schemas of payload and result; None for a type that has no schema."""
        return _schema(self._codec.arguments.type), _schema(self._codec.result.type)

    def encode_result(self, value: object, limit: int = payload.MAX_BYTES) -> str:
        """The JSON text of the return value. Raises InvalidPayload, also if it does not fit its annotation."""
        if value is None and self.may_return_none:
            return "null"
        where = f"the result of {self.task}"
        plain = payload.is_plain(value)
        text = payload.encode(value, path=where, limit=limit, hook=plain_value, plain=plain)
        back = self.decode_result(text)
        if not plain:
            check_round_trip(value, back, where)
        return text

    @cached_property
    def may_return_none(self) -> bool:
        """Whether the return annotation allows None, or is missing."""
        try:
            return self.decode_result("null") is None
        except InvalidPayload:
            return False

    def decode_result(self, text: str) -> Any:
        """A stored result, converted to the return annotation."""
        try:
            return self._codec.result.decode(text)
        except msgspec.DecodeError as error:
            raise InvalidPayload(f"the result of {self.task}", f"does not fit its annotation: {error}") from None

    # Binding

    def _classify_parameters(self) -> None:
        parameters = self._signature.parameters.values()
        self._all_positional = all(p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD for p in parameters)
        self._all_accept_keywords = all(parameter.kind in _NAMED for parameter in parameters)
        self._positional = [p.name for p in parameters if p.kind is not inspect.Parameter.KEYWORD_ONLY]
        self._variadic = next((p.name for p in parameters if p.kind is _VAR_POSITIONAL), None)
        self._known = frozenset(parameter.name for parameter in parameters)
        self._required = frozenset(p.name for p in parameters if p.default is p.empty and p.kind not in _VARIADIC)
        self._all_required = self._required == self._known

    def _bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        if self._all_accept_keywords and not kwargs and len(args) == len(self._positional) == len(self._known):
            return dict(zip(self._positional, args, strict=True))
        # Signature.bind takes longer than all the checks, so it is called only for unusual signatures and for errors.
        if self._all_accept_keywords and len(args) <= len(self._positional):
            arguments = {**dict(zip(self._positional, args, strict=False)), **kwargs}
            twice = len(arguments) < len(args) + len(kwargs)
            if not twice and self._required.issubset(arguments) and self._known.issuperset(kwargs):
                return arguments
        if passed := self._injected.keys() & kwargs.keys():
            raise InvalidArguments(f"{self.task}({min(passed)}): the worker fills in this parameter; leave it out")
        try:
            arguments = self._signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            text = str(error)
            verb = "got " if text.startswith(("too many", "multiple")) else ""
            raise InvalidArguments(f"{self.task}() {verb}{text}") from None
        return {name: list(value) if name == self._variadic else value for name, value in arguments.items()}

    # Annotations

    def _is_attempt(self, first: inspect.Parameter) -> bool:
        try:
            return self._resolve(first.name, first.annotation) is Attempt and first.kind in (
                inspect.Parameter.POSITIONAL_ONLY,
                inspect.Parameter.POSITIONAL_OR_KEYWORD,
            )
        except _Unresolved:
            return False

    def _check_injected(self, parameters: list[inspect.Parameter]) -> None:
        """Resources are passed by keyword, so the position of another argument must not depend on them."""
        before = None
        for one in parameters:
            where = f"{self.task}({one.name})"
            if before is not None and one.kind in _POSITIONAL and one.name not in self._injected:
                raise InvalidInput(f"{where} comes after {before}, which the worker fills in: write it before {before}")
            if one.name in self._injected:
                before = one.name
                if one.kind not in _NAMED or one.annotation is one.empty:
                    raise InvalidInput(f"{where}: write an injected parameter as `{one.name}: Type = injected`")

    @cached_property
    def resources(self) -> Mapping[str, Any]:
        """The types of the parameters that the worker fills in with resources, by name."""
        return {name: self._resolve(name, one.annotation) for name, one in self._injected.items()}

    def stored_as(self, kinds: Iterable[Any]) -> Iterator[str]:
        """The parameters of these types that are not injected, but part of the payload."""
        for name, parameter in self._signature.parameters.items():
            with suppress(_Unresolved):
                hint = self._resolve(name, parameter.annotation)
                if any(hint == kind for kind in kinds):  # not every annotation can be hashed
                    yield name

    @cached_property
    def _codec(self) -> _Codec:
        hints = {name: self._hint(parameter) for name, parameter in self._signature.parameters.items()}
        result = self._resolve("return", self._signature.return_annotation)
        result = None if result in (typing.NoReturn, typing.Never) else result
        for name, hint in hints.items():
            self._check_convertible(f"{self.task}({name})", hint, _INJECT)
        self._check_convertible(f"the result of {self.task}", result)
        arguments = _record(hints, self._required)
        return _Codec(
            msgspec.json.Decoder(arguments, dec_hook=_decode_custom),
            msgspec.json.Decoder(result, dec_hook=_decode_custom),
        )

    def _hint(self, parameter: inspect.Parameter) -> Any:
        hint = self._resolve(parameter.name, parameter.annotation)
        if any(part is Attempt for part in _parts(hint)):
            raise InvalidInput(
                f"{self.task}({parameter.name}): the attempt is the first parameter, annotated `attempt: Attempt` "
                "and nothing else; every attempt has one, so it is never None"
            )
        return _stored_as(parameter, hint)

    def _resolve(self, name: str, annotation: Any) -> Any:
        return resolve(self._function, self.task if name == "return" else f"{self.task}({name})", annotation)

    def _check_convertible(self, where: str, hint: Any, advice: str = "") -> None:
        try:
            unconvertible = next(_unconvertible(msgspec.inspect.type_info(hint), set()), None)
        except _LATER as error:
            whole = formatannotation(hint)
            raise _Unresolved(f"{where}: an annotation within {whole} cannot be resolved: {error}") from None
        except TypeError as error:
            raise InvalidInput(f"{where}: {formatannotation(hint)} cannot be converted from JSON: {error}") from None
        if unconvertible is not None:
            part = formatannotation(unconvertible)
            raise InvalidInput(f"{where}: {part} cannot be converted from JSON; {_CONVERTIBLE}{advice}")

    # Error messages

    def _location(self, rest: str) -> str:
        """Convert a path to the form of messages: `.cents[0]` to `charge(cents)[0]`."""
        match = re.fullmatch(r"(?s)\.(\w+)(.*)", rest)
        return f"{self.task}({match[1]}){match[2]}" if match else f"{self.task}()"

    def _message(self, error: msgspec.DecodeError) -> str:
        match = _DECODE_ERROR.fullmatch(str(error))
        assert match is not None
        return f"{self._location(match['rest'] or '')}: {match['problem']}"

    def _difference(self, text: str, error: msgspec.DecodeError) -> str:
        """How a stored payload differs from the signature that the function has now."""
        try:
            stored = payload.decode(text)
        except msgspec.DecodeError:
            return f"{self.task}(): the stored payload is no JSON: {error}"
        if not isinstance(stored, dict):
            return f"{self.task}(): the stored payload is no JSON object"
        missing = [f"{name} is not in it" for name in sorted(self._required - stored.keys())]
        unknown = [f"{name} is no parameter" for name in sorted(stored.keys() - self._known)]
        if missing or unknown:
            return f"{self.task}(): the stored payload does not fit the function: {', '.join(missing + unknown)}"
        return self._message(error)


def check_round_trip(value: Any, back: Any, where: str) -> None:
    """Raise InvalidPayload, with the path, if a value does not come back from JSON as it was."""
    if not payload.is_plain(value):
        found = difference(value, back, where)
        if found is not None:
            raise InvalidPayload(found.path, f"{found.problem}; {_ANNOTATE}")


def check_round_trip_by_type(value: Any, text: str, where: str) -> None:
    """Raise InvalidPayload if a value does not come back as it was when the reader asks for its own type."""
    if not payload.is_plain(value):
        check_round_trip(value, converter(type(value))(text, where), where)


def converter(kind: Any) -> Callable[[str, str], Any]:
    """A function that converts JSON text to this type. Its second argument names the value in errors."""
    try:
        decoder = msgspec.json.Decoder(kind, dec_hook=_decode_custom)
    except TypeError as error:
        raise InvalidInput(f"{formatannotation(kind)} cannot be converted from JSON: {error}") from None

    def convert(text: str, where: str) -> Any:
        try:
            return decoder.decode(text)
        except msgspec.DecodeError as error:
            raise InvalidPayload(where, f"does not fit {formatannotation(kind)}: {error}") from None

    return convert


def result_converter(function: Function) -> Callable[[str, str], Any]:
    """A converter to the function's return annotation, or to plain JSON values if it has none that can be used."""
    inner = inspect.unwrap(function)
    try:
        return converter(_evaluate(inner, inner.__annotations__["return"]))
    except (AttributeError, KeyError, NameError, TypeError, InvalidInput):
        return converter(Any)


def resolve(function: Function, where: str, annotation: Any) -> Any:
    """The type that an annotation of a function names; Any if there is none. Raises InvalidInput."""
    if annotation is inspect.Signature.empty:
        return Any
    text = annotation if isinstance(annotation, str) else formatannotation(annotation)
    try:
        return _evaluate(function, annotation)
    except _LATER as error:
        raise _Unresolved(f"{where}: the annotation {text} cannot be resolved: {error}") from None
    except Exception as error:
        raise InvalidInput(f"{where}: the annotation {text} cannot be evaluated: {error}") from None


class _Unresolved(InvalidInput):
    """An annotation names something that is not defined, at least not yet."""


def _check_function(function: Function) -> None:
    problem = _problem_with(function)
    if problem:
        name = getattr(function, "__qualname__", None) or f"{function!r:.80}"
        raise InvalidInput(f"{name} cannot be a task: it is {problem}; a task is a function, `def` or `async def`")


def _problem_with(function: Function) -> str | None:
    if inspect.isclass(function):
        return "a class"
    if not callable(function) or not hasattr(function, "__qualname__") or inspect.isbuiltin(function):
        return f"of type {type(function).__qualname__}"
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        return "a generator, whose values would go nowhere"
    if inspect.ismethod(function) or _is_in_class_body(function):
        return "a method, and a worker has no object to call it on"
    if function.__name__ == "<lambda>":
        return "a lambda, which has no name to be found by"
    return None


def _is_in_class_body(function: Function) -> bool:
    scope = getattr(function, "__qualname__", "").rpartition(".")[0]
    first = next(iter(signature_of(function).parameters), None) if scope else None
    return first in ("self", "cls") and not scope.endswith("<locals>")


def signature_of(function: Function) -> inspect.Signature:
    """The signature with unevaluated annotations: they may name something that is not defined yet."""
    if sys.version_info >= (3, 14):
        from annotationlib import Format

        return inspect.signature(function, annotation_format=Format.FORWARDREF)
    return inspect.signature(function)


def _evaluate(function: Function, annotation: Any) -> Any:
    """Resolve an annotation in the module of its function."""
    inner = inspect.unwrap(function)
    known = dict(getattr(inner, "__globals__", {}))
    # Linters move imports that only annotations use under TYPE_CHECKING. Attempt must be found even then.
    known.setdefault("Attempt", Attempt)
    known.update({parameter.__name__: parameter for parameter in getattr(inner, "__type_params__", ())})

    def probe() -> None: ...

    probe.__annotations__ = {"it": annotation}
    return typing.get_type_hints(probe, globalns=known, include_extras=True)["it"]


def _record(hints: Mapping[str, Any], required: frozenset[str]) -> type[msgspec.Struct]:
    """The type of a task's payload. Its fields are numbered, because not every parameter name is a valid field name."""
    numbered = {f"p{number}": name for number, name in enumerate(hints)}
    fields: list[Any] = [
        (field, hints[name]) if name in required else (field, hints[name], msgspec.UNSET)
        for field, name in numbered.items()
    ]
    return msgspec.defstruct("Arguments", fields, rename=numbered, kw_only=True, forbid_unknown_fields=True)


def _stored_as(parameter: inspect.Parameter, hint: Any) -> Any:
    """The type of a stored argument: a list for `*args`, an object for `**kwargs`."""
    if parameter.kind not in _VARIADIC:
        return hint
    if typing.get_origin(hint) is typing.Unpack:
        return typing.get_args(hint)[0]
    return list[hint] if parameter.kind is _VAR_POSITIONAL else dict[str, hint]


def _parts(hint: Any) -> Iterator[Any]:
    """A type and, recursively, its type arguments."""
    yield hint
    for argument in typing.get_args(hint):
        yield from _parts(argument)


def _unconvertible(info: Any, seen: set[int]) -> Iterator[type]:
    """The classes within a type that neither msgspec nor `_decode_custom` can create."""
    if isinstance(info, tuple):
        for item in info:
            yield from _unconvertible(item, seen)
    elif isinstance(info, msgspec.inspect.CustomType):
        if info.cls is not object and not _is_model(info.cls):
            yield info.cls
    elif isinstance(info, msgspec.inspect.Type | msgspec.inspect.Field) and id(info) not in seen:
        seen.add(id(info))  # types may contain themselves
        for name in info.__struct_fields__:
            yield from _unconvertible(getattr(info, name), seen)


def _is_model(cls: type) -> bool:
    """Whether it is a pydantic model. Does not import pydantic: if no module did, there is no model."""
    pydantic = sys.modules.get("pydantic")
    return pydantic is not None and issubclass(cls, pydantic.BaseModel)


def plain_value(value: Any) -> Any:
    """Convert a value of a type that msgspec does not support to one that it does."""
    if _is_model(type(value)):
        return value.model_dump(mode="json", by_alias=True, round_trip=True)
    # msgspec rejects subclasses, such as safe strings, numpy's floats or frozen datetimes.
    for base, plain in _BASES.items():
        if isinstance(value, base):
            return plain(value)
    raise NotImplementedError(f"values of type {type(value).__qualname__} cannot be stored")


def _schema(kind: Any) -> dict[str, Any] | None:
    try:
        return msgspec.json.schema(kind, schema_hook=_model_schema)
    except TypeError:
        return None  # the type can be converted, but has no schema


def _model_schema(cls: Any) -> dict[str, Any]:
    if cls is object:
        return {}
    if not _is_model(cls):
        raise NotImplementedError
    schema: dict[str, Any] = cls.model_json_schema()
    return schema


def _decode_custom(cls: Any, value: Any) -> Any:
    """Create a pydantic model. From JSON text, because only then do strict models accept dates as strings."""
    return value if cls is object else cls.model_validate_json(msgspec.json.encode(value))
