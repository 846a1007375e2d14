"""Has the records that a client returns decode their values."""

from __future__ import annotations

from functools import cache
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from msgspec import Struct
from msgspec.structs import force_setattr, replace

from .codecs import Codecs, Decodable, attach, note_of
from .job import Chain, Job

T = TypeVar("T")


def decodable(value: T, codecs: Codecs | None) -> T:
    """Attach codecs to a record, or to all records in a page or list. Returns the same object."""
    if codecs is not None:
        _attach(value, codecs)
    return value


def _attach(value: Any, codecs: Codecs) -> None:
    match value:
        case Decodable():
            attach(value, codecs)
            if isinstance(value, Job) and value.progress is not None and value.progress.note is not None:
                note = note_of(value.progress.note, codecs)
                force_setattr(value, "progress", replace(value.progress, note=note))
        case list() | tuple() | Chain():
            for one in value:
                _attach(one, codecs)
        case Struct():
            for name in _fields_with_records(type(value)):
                _attach(getattr(value, name), codecs)


@cache
def _fields_with_records(kind: type[Struct]) -> tuple[str, ...]:
    """The fields that can hold a record with encoded values: a list of a thousand queues has none."""
    hints = get_type_hints(kind)
    return tuple(name for name in kind.__struct_fields__ if _holds_records(hints[name]))


def _holds_records(hint: Any) -> bool:
    if any(_holds_records(part) for part in get_args(hint)):
        return True
    kind = get_origin(hint) or hint
    if not isinstance(kind, type):
        return False
    if issubclass(kind, (Decodable, Chain)):
        return True
    return issubclass(kind, Struct) and bool(_fields_with_records(kind))
