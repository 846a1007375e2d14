"""What is not to be shown of payloads, results and errors: values of keys such as "password", and passwords in URLs.

The web and the command line show the same, by what is decided here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, TypeVar

from msgspec.structs import replace

from .job import AttemptRecord, BlockerInfo, Chain, Job
from .schedule import ScheduleInfo
from .views import AuditEntry, AuditPage, FailureGroup, Page, TargetInfo, TargetPage, TargetView

T = TypeVar("T")
Redact = Callable[[str], str]

KEYS = (
    "password", "passwd", "pwd", "passphrase", "secret", "token", "authorization", "api_key", "access_key",
    "private_key", "cookie", "credentials", "card_number", "cvv", "iban", "ssn",
)  # fmt: skip
HIDDEN = "[hidden]"

_CREDENTIALS = re.compile(  # with bounds: it goes over whole payloads
    r"(?P<scheme>[a-z][a-z0-9+.-]{0,30}://[^\s:/@]{0,200}):[^\s/@]{1,500}@", re.IGNORECASE
)


def redactor(keys: Iterable[str] = KEYS) -> Redact:
    """A function that hides the values of these keys in a JSON text. Case, dashes and words beside them do not matter:
    "X-Api-Key" and "dbPassword" are meant as well."""
    meant = [re.escape(plain) for plain in map(_plain, keys) if plain]
    if not meant:
        return lambda text: text
    key_of = re.compile("|".join(meant))

    def walk(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: HIDDEN if key_of.search(_plain(name)) else walk(inner) for name, inner in value.items()}
        if isinstance(value, list):
            return [walk(inner) for inner in value]
        return words(value) if isinstance(value, str) else value

    def words(text: str) -> str:
        """A text may be JSON itself, such as a body that was received. What holds nothing to hide stays as it is."""
        if text.lstrip()[:1] in ("{", "[", '"') and (key_of.search(_plain(text)) or "\\u" in text):
            with suppress(ValueError, RecursionError):
                inner = json.loads(text)
                shown = walk(inner)
                if shown != inner:
                    return json.dumps(shown, ensure_ascii=False)
        return without_passwords(text)

    def redact(text: str) -> str:
        # A letter may be written as \u0077 as well: such a text is read before it is judged.
        if not (key_of.search(_plain(text)) or "\\u" in text or _CREDENTIALS.search(text)):
            return text  # as it was stored, to the letter
        try:
            shown = json.dumps(walk(json.loads(text)), ensure_ascii=False, allow_nan=False)
            shown.encode()  # half of a surrogate pair can be read, and not be sent
            return shown
        except (ValueError, RecursionError):
            return HIDDEN

    return redact


def without_passwords(text: str) -> str:
    """A text without the passwords of URLs in it."""
    return _CREDENTIALS.sub(r"\g<scheme>:[hidden]@", text)


def without_passwords_in(text: str | None) -> str | None:
    """The same of what may not be there."""
    return None if text is None else without_passwords(text)


def shown(value: T, redact: Redact) -> T:
    """What a client has told, as it may be shown: nouns, lists and texts; anything else stays as it is."""
    made: Any = _shown(value, redact)
    return made  # type: ignore[no-any-return]


def _shown(value: Any, redact: Redact) -> Any:
    match value:
        case str():
            return without_passwords(value)
        case list() | tuple() if not hasattr(value, "_fields"):
            return type(value)(_shown(one, redact) for one in value)
        case Job():
            texts = {name: _json(getattr(value, name), redact) for name in ("payload_json", "result_json", "context")}
            progress = value.progress and replace(value.progress, note=without_passwords_in(value.progress.note))
            return replace(value, **texts, error=without_passwords_in(value.error), progress=progress)
        case AttemptRecord():
            return replace(value, error=without_passwords_in(value.error))
        case BlockerInfo():
            return replace(value, result_json=_json(value.result_json, redact))
        case ScheduleInfo():
            return replace(value, payload_json=redact(value.payload_json))
        case FailureGroup():
            # What is searched for ends before a password: it finds these jobs, and perhaps some more.
            return replace(value, error=without_passwords(value.error), search=_CREDENTIALS.split(value.search)[0])
        case AuditEntry():
            return replace(value, detail=_detail(value.detail, redact))
        case Page():
            return replace(value, jobs=_shown(value.jobs, redact))
        case Chain():
            return Chain(_shown(value.jobs, redact))
        case AuditPage():
            return replace(value, entries=_shown(value.entries, redact))
        case TargetPage():
            return replace(value, targets=_shown(value.targets, redact))
        case TargetInfo():
            return replace(value, holder=_shown(value.holder, redact))
        case TargetView():
            return replace(value, holder=_shown(value.holder, redact), line=_shown(value.line, redact))
    return value


def _detail(detail: dict[str, Any], redact: Redact) -> dict[str, Any]:
    try:
        return dict(json.loads(redact(json.dumps(detail))))
    except ValueError:
        return {"detail": HIDDEN}


def _json(text: str | None, redact: Redact) -> str | None:
    return None if text is None else redact(text)


def _plain(name: str) -> str:
    """Letters and digits only, of any script, small."""
    return re.sub(r"[\W_]", "", name.casefold())
