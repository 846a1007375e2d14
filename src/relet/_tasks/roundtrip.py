"""Finds differences between a value and its copy that was encoded as JSON and decoded again.

With an annotation, a value is decoded to that type. Without one, it comes back as JSON has it: bytes as text, a set as
a list. Some types lose data whatever the annotation. Enqueue refuses a value that does not come back equal, and names
its path. Plain JSON values are not compared: the caller chose the annotation that converts them.

Equal means `==`, with these exceptions:

- Records (dataclasses, Structs, pydantic models) are compared field by field and must have the same class, because not
  every class defines equality.
- Datetimes are compared in UTC: Python's `==` is always false between time zones for one in a repeated hour.
- A tuple may come back as a list, as JSON has it. A named tuple must keep its type.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import msgspec

from .._core import payload

_MISSING = object()


class Difference(NamedTuple):
    """The path of a part that does not come back equal, and how it differs."""

    path: str
    problem: str


def difference(value: Any, back: Any, path: str = "") -> Difference | None:
    """The first difference between a value and its decoded copy; None: they are equal."""
    return next(_differences(value, back, path), None)


def _differences(value: Any, back: Any, path: str) -> Iterator[Difference]:
    if _equal(value, back) if type(value) is type(back) else payload.is_plain(value):
        return  # plain JSON may become another type: the caller chose the annotation
    names = _fields(value)
    if names is not None:
        if type(back) is not type(value):
            yield _differ(value, back, path)
            return
        for name in names:
            yield from _differences(getattr(value, name, _MISSING), getattr(back, name, _MISSING), f"{path}.{name}")
    elif isinstance(value, datetime) and isinstance(back, datetime):
        if not _same_moment(value, back):
            yield _differ(value, back, path)
    elif isinstance(value, list | tuple) and isinstance(back, list | tuple) and not hasattr(value, "_fields"):
        if len(value) != len(back):
            yield _differ(value, back, path)
            return
        for index, (item, item_back) in enumerate(zip(value, back, strict=True)):
            yield from _differences(item, item_back, f"{path}[{index}]")
    elif isinstance(value, dict):
        yield from _dict_differences(value, back, path)
    elif not _equal(value, back):
        yield _differ(value, back, path)


def _dict_differences(value: dict[Any, Any], back: Any, path: str) -> Iterator[Difference]:
    """Compare a dictionary with its copy, which may be a record if the annotation is one."""
    if isinstance(back, dict):
        for key, item in value.items():
            if key in back:
                yield from _differences(item, back[key], f"{path}.{key}")
            elif not payload.is_plain(value):  # plain keys may be converted by the annotation
                yield Difference(f"{path} (key)", f"the key {key!r:.80} of type {_type(key)} would arrive as another")
    elif _fields(back) is None:
        yield _differ(value, back, path)
    else:
        for key, item in value.items():
            if not payload.is_plain(item):
                yield from _differences(item, getattr(back, str(key), _MISSING), f"{path}.{key}")


def _differ(value: Any, back: Any, path: str) -> Difference:
    type_before, type_after = _type(value), _type(back)
    if back is _MISSING:
        return Difference(path, f"a value of type {type_before} would not arrive")
    arrives = f"would arrive as {type_after}" if type_before != type_after else "would arrive with another value"
    return Difference(path, f"a value of type {type_before} {arrives}")


def _type(value: Any) -> str:
    return type(value).__qualname__


def _equal(value: Any, back: Any) -> bool:
    try:
        return bool(value == back)
    except Exception:
        return False  # arrays, signalling NaNs and others that cannot be compared


def _same_moment(value: datetime, back: datetime) -> bool:
    if value.tzinfo is None or back.tzinfo is None:
        return value.tzinfo is back.tzinfo and value == back
    try:
        return _in_utc(value) == _in_utc(back)
    except OverflowError:  # in the first or last year of the calendar
        return _equal(value, back)


def _in_utc(moment: datetime) -> datetime:
    """A naive datetime in UTC. An aware one would compare by the rules of its time zone."""
    return moment.replace(tzinfo=None, fold=0) - (moment.utcoffset() or timedelta())


def _fields(value: Any) -> list[str] | None:
    """The names of a record's fields; None: it is not a record."""
    kind = type(value)
    if dataclasses.is_dataclass(kind):
        return [field.name for field in dataclasses.fields(kind)]
    if isinstance(value, msgspec.Struct):
        return list(kind.__struct_fields__)
    if hasattr(kind, "__attrs_attrs__"):
        return [field.name for field in kind.__attrs_attrs__]
    pydantic = sys.modules.get("pydantic")
    if pydantic is not None and isinstance(value, pydantic.BaseModel):
        return [*kind.model_fields, *(value.__pydantic_extra__ or ())]
    return None
