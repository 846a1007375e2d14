"""Has the records that a client returns decode their values."""

from __future__ import annotations

from typing import Any, TypeVar

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
            for name in value.__struct_fields__:
                _attach(getattr(value, name), codecs)
