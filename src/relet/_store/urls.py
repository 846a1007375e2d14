"""URLs of other libraries, and URLs without their secrets. Every URL in an error, a log line or a repr goes through
this module."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, parse_qsl, unquote, urlencode, urlsplit

from ..errors import InvalidInput

#: The drivers in URLs of SQLAlchemy. Relet connects by psycopg and sqlite3, whichever of them the URL names.
_DRIVERS = {
    "postgresql": ("psycopg", "psycopg_async", "psycopg2", "asyncpg"),
    "postgres": ("psycopg", "psycopg_async", "psycopg2", "asyncpg"),
    "sqlite": ("pysqlite", "aiosqlite"),
}
#: Options of asyncpg, and of SQLAlchemy's dialect for it: how libpq calls them, or None if only that driver has a use.
_OF_ASYNCPG = {
    "ssl": "sslmode",
    "timeout": "connect_timeout",
    "command_timeout": None,
    "statement_cache_size": None,
    "prepared_statement_cache_size": None,
    "prepared_statement_name_func": None,
}
_CREDENTIALS = re.compile(r"//[^:]*:(.*)@")  # greedy: a password may hold an unescaped @ or /


def without_driver(url: str) -> str:
    """A URL of SQLAlchemy, such as postgresql+asyncpg://, as libpq and sqlite3 understand it. Others are unchanged."""
    scheme, separator, rest = url.partition("://")
    database, _, driver = scheme.partition("+")
    if rest.partition("@")[0].endswith(":***"):
        raise InvalidInput(
            f"the password in {redacted(url)} is ***, by which SQLAlchemy hides it in str(url): use "
            f"relet.contrib.sqlalchemy.database_url(engine), or url.render_as_string(hide_password=False)"
        )
    if driver not in _DRIVERS.get(database, ()):
        return url
    if driver == "asyncpg":
        rest = _of_libpq(rest)
    return f"{database}{separator}{rest}"


def with_option(url: str, name: str, value: str) -> str:
    """A URL with an option of libpq, unless it has that option. A password may hold an unescaped question mark."""
    _, mark, query = url.rpartition("?")
    has_query = bool(mark) and "@" not in query
    if has_query and name in dict(parse_qsl(query, keep_blank_values=True)):
        return url
    return f"{url}{'&' if has_query else '?'}{name}={value}"


def _of_libpq(rest: str) -> str:
    """Replaces the options of asyncpg. A password may hold an unescaped question mark, so only the last one counts."""
    location, mark, query = rest.rpartition("?")
    if not mark or "@" in query:
        return rest
    options = [(_OF_ASYNCPG.get(name, name), value) for name, value in parse_qsl(query)]
    kept = urlencode([(name, value) for name, value in options if name is not None])
    return f"{location}?{kept}" if kept else location


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
