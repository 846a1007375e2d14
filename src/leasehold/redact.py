"""What is not to be shown of payloads and results: values of keys such as "password", and passwords in URLs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

KEYS = (
    "password", "passwd", "pwd", "passphrase", "secret", "token", "authorization", "api_key", "access_key",
    "private_key", "cookie", "credentials", "card_number", "cvv", "iban", "ssn",
)  # fmt: skip
HIDDEN = "[hidden]"

_CREDENTIALS = re.compile(  # with bounds: it goes over whole payloads
    r"(?P<scheme>[a-z][a-z0-9+.-]{0,30}://[^\s:/@]{0,200}):[^\s/@]{1,500}@", re.IGNORECASE
)


def redactor(keys: Iterable[str] = KEYS) -> Callable[[str], str]:
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


def _plain(name: str) -> str:
    """Letters and digits only, of any script, small."""
    return re.sub(r"[\W_]", "", name.casefold())
