"""URLs without their secrets. Every URL in an error, a log line or a repr goes through this module."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, unquote, urlsplit

_CREDENTIALS = re.compile(r"//[^:]*:(.*)@")  # greedy: a password may hold an unescaped @ or /


def redacted(url: str) -> str:
    """A URL to display: scheme, user, host, port and database, as far as they can be separated from a password."""
    try:
        parts = urlsplit(url)
        host = f"{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}"
        scheme, user, path = parts.scheme, parts.username, parts.path
    except ValueError:
        return f"{url.partition(':')[0]}://..."
    if "@" in path or "@" in parts.query:  # unescaped / or ? in the password: the rest may be a part of it
        return f"{scheme}://..."
    return f"{scheme}://{f'{user}@' if user else ''}{host}{path}"


def hide(message: str, url: str) -> str:
    """A message of the driver, with the URL redacted and the password replaced."""
    message = message.replace(url, redacted(url))
    for secret in sorted(_secrets(url), key=len, reverse=True):
        message = message.replace(secret, "***")
    return message


def _secrets(url: str) -> set[str]:
    """The password, quoted and unquoted, and every part of it that a driver may mistake for another part of the URL."""
    found = [match[1] for match in [_CREDENTIALS.search(url)] if match]
    found += parse_qs(url.partition("?")[2]).get("password", [])
    parts = {part for one in found for part in [one, *re.split(r"[@/?#:]", one)]}
    return {text for part in parts for text in (part, unquote(part)) if len(text) > 1}
