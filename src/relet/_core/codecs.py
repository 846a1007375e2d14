"""Codecs: the JSON text of a value is encoded before it is stored, and decoded after it was read.

An encoded value is stored as an envelope, `{"$relet":"<codec>","data":"<base64>"}`, in the column of the plain one. So
a store may hold values of several codecs, and of none, at the same time. A plain value that looks like an envelope is
stored in one of the codec `plain`, which leaves it as it is. Both stores return the text of a value unchanged, so its
first characters tell an envelope.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Protocol

import msgspec
from msgspec import Struct
from msgspec.structs import force_setattr

from ..errors import CodecError, InvalidInput
from . import validate

#: How every envelope begins.
PREFIX = '{"$relet":'
PLAIN = "plain"


class Codec(Protocol):
    """Turns bytes into other bytes and back. Threads share it."""

    @property
    def name(self) -> str:
        """Stored with each value: it must stay the same as long as such values exist."""

    def encode(self, data: bytes, /) -> bytes | None:
        """The bytes to store for the JSON text of a value; None: store the value as it is."""

    def decode(self, data: bytes, /) -> bytes:
        """The JSON text again. An exception says why it cannot be decoded."""


class _Envelope(Struct, frozen=True, forbid_unknown_fields=True, rename={"codec": "$relet"}):
    codec: str
    data: bytes  # base64 in JSON


_decoder = msgspec.json.Decoder(_Envelope)


class Encoded(Struct, frozen=True):
    """In place of a value that cannot be decoded here. `problem` says why."""

    codec: str
    problem: str

    def __repr__(self) -> str:
        return f"<encoded with {self.codec}>"


class Codecs:
    """The codecs of an app, by name. The first one is the default."""

    def __init__(self, codecs: Iterable[Codec] = ()) -> None:
        self._codecs: dict[str, Codec] = {}
        for codec in codecs:
            name = _checked_name(codec)
            if name in self._codecs:
                raise InvalidInput(f"two codecs are named {name}; give one of them another name")
            self._codecs[name] = codec
        self.default = next(iter(self._codecs), None)

    def __bool__(self) -> bool:
        return bool(self._codecs)

    def check(self, name: str | None) -> str | None:
        """The name of one of the codecs, or None; else InvalidInput."""
        if name is None or name in self._codecs:
            return name
        raise InvalidInput(f"no codec of the app is named {name!r}; {self._existing}")

    def encode(self, text: str, name: str | None) -> str:
        """The text to store for the JSON text of a value: encoded by this codec, or by none."""
        if name is None:
            return _envelope(PLAIN, text.encode()) if codec_of(text) else text
        if text == "null":  # the absence of a value
            return text
        try:
            data = self._codecs[name].encode(text.encode())
            return self.encode(text, None) if data is None else _envelope(name, _checked_bytes(data))
        except Exception as error:  # a codec may raise anything
            raise CodecError(name, f"codec {name!r} cannot encode a value: {_reason(error)}") from error

    def decode(self, text: str, where: str = "a value") -> str:
        """The JSON text of a value as it was stored. `where` names the value in errors."""
        envelope = _envelope_of(text)
        if envelope is None:
            return text
        name = envelope.codec
        if name != PLAIN and name not in self._codecs:
            raise CodecError(
                name,
                f"{where} is encoded with codec {name!r}, which this app does not have: add it to App(codecs=[...]); "
                f"{self._existing}",
            )
        try:
            data = envelope.data if name == PLAIN else self._codecs[name].decode(envelope.data)
            return data.decode()
        except Exception as error:
            raise CodecError(name, f"codec {name!r} cannot decode {where}: {_reason(error)}") from error

    def encode_note(self, note: str, name: str | None) -> str:
        """The text to store for a note, which is text and not JSON."""
        text = msgspec.json.encode(note).decode()
        stored = self.encode(text, name)
        if stored != text:
            return stored
        return note if codec_of(note) is None else _envelope(PLAIN, text.encode())

    @property
    def _existing(self) -> str:
        return f"it has {', '.join(self._codecs)}" if self._codecs else "it has none"


NO_CODECS = Codecs()


class Decodable(Struct, frozen=True, dict=True):
    """A record with stored values. If a client has attached the codecs of its app, its properties decode them."""

    _codecs: ClassVar[Codecs | None] = None


def attach(record: Decodable, codecs: Codecs) -> None:
    """Have the properties of a record decode. This is no field: it is neither stored nor compared."""
    force_setattr(record, "_codecs", codecs)


def codec_of(text: str) -> str | None:
    """The name of the codec by which a stored text is encoded; None: it is a plain value."""
    envelope = _envelope_of(text)
    return None if envelope is None else envelope.codec


def value_of(text: str, codecs: Codecs | None = None) -> Any:
    """The value of a stored text, as plain JSON values; `Encoded` if these codecs cannot decode it."""
    codec = codec_of(text)
    if codec is None:
        return msgspec.json.decode(text)
    try:
        return msgspec.json.decode((codecs or NO_CODECS).decode(text))
    except (CodecError, msgspec.DecodeError) as error:
        return Encoded(codec, str(error))


def note_of(note: str, codecs: Codecs | None = None) -> str:
    """A stored note. One that cannot be decoded reads as `encoded with ...`."""
    codec = codec_of(note)
    value = note if codec is None else value_of(note, codecs)
    return value if isinstance(value, str) else f"encoded with {codec}"


def displayed(text: str) -> str:
    """A stored text as operators see it: in place of an encoded value the name of its codec."""
    codec = codec_of(text)
    if codec is None:
        return text
    value = value_of(text) if codec == PLAIN else f"encoded with {codec}"
    return msgspec.json.encode(value).decode()


def _envelope_of(text: str) -> _Envelope | None:
    if not text.startswith(PREFIX):
        return None
    try:
        return _decoder.decode(text)
    except msgspec.DecodeError:
        return None


def _envelope(codec: str, data: bytes) -> str:
    return msgspec.json.encode(_Envelope(codec, data)).decode()


def _checked_bytes(data: object) -> bytes:
    if isinstance(data, bytes):
        return data
    raise TypeError(f"encode() returned an object of type {type(data).__name__}, not bytes")


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _checked_name(codec: Codec) -> str:
    name = validate.name("a codec's name", getattr(codec, "name", None))
    if name == PLAIN:
        raise InvalidInput(f"no codec can be named {PLAIN}: that is the name of values that are not encoded")
    for method in ("encode", "decode"):
        if not callable(getattr(codec, method, None)):
            raise InvalidInput(f"codec {name} has no method {method}")
    return name
