"""Tokens, and the sessions that stand for them in a browser.

A token is kept as its hash and compared in constant time. A session is signed with its own token's hash: who has no
token can make no session, and a token that is changed takes its sessions with it. What is stored are only sessions that
were signed out, by a hash: a restart, or several processes, make no difference.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from ..errors import InvalidInput

Role = Literal["read", "operate"]
Tokens = str | Mapping[str, str]

COOKIE = "relet_session"
SHORTEST = 16
SESSION_FOR = 12 * 3600.0
CLOCKS_DIFFER = 86400.0  # seconds, at the most, by which the store's may be wrong


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody who has shown a token, or a session made from one (`session`: what forms of it are signed with)."""

    name: str
    role: Role
    session: str | None = None


@dataclass(frozen=True, slots=True)
class _Key:
    name: str
    role: Role
    digest: bytes

    def sign(self, purpose: str, text: str) -> str:
        made = hmac.new(self.digest, f"relet {purpose}\0{text}".encode(), "sha256").digest()
        return base64.urlsafe_b64encode(made).decode().rstrip("=")


class Keys:
    """Who may come in."""

    def __init__(
        self, *, operate: Tokens | None = None, read: Tokens | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self._clock = clock
        self._keys = [*_keys("operate", operate or {}), *_keys("read", read or {})]
        if not self._keys:
            raise InvalidInput("a token is needed: give operate=..., read=..., or both")
        names = [key.name for key in self._keys]
        if len({*names}) < len(names) or len({key.digest for key in self._keys}) < len(names):
            raise InvalidInput("each name has one token, and each token one name")

    def by_token(self, token: str) -> Caller | None:
        """Who has this token. Every token is compared, so that the time tells nothing."""
        digest, found = _digest(token), None
        for key in self._keys:
            if hmac.compare_digest(key.digest, digest):
                found = Caller(key.name, key.role)
        return found

    def open_session(self, caller: Caller) -> str:
        """A value for a cookie that stands for this caller for some hours."""
        key = self._key(caller.name)
        assert key is not None  # noqa: S101
        said = f"{int(self._clock() + SESSION_FOR)}.{secrets.token_urlsafe(16)}.{_hidden(caller.name)}"
        return f"{said}.{key.sign('session', said)}"

    def by_session(self, value: str) -> Caller | None:
        """Whom a cookie stands for; None if it is no session of ours, or over."""
        said, _, signature = value.rpartition(".")
        parts = said.split(".")
        if len(parts) != 3 or not parts[0].isdecimal() or len(parts[0]) > 12:
            return None
        key = self._key(_shown(parts[2]))
        if key is None or not hmac.compare_digest(key.sign("session", said).encode(), signature.encode()):
            return None
        return Caller(key.name, key.role, said) if int(parts[0]) > self._clock() else None

    def ending(self, session: str) -> tuple[str, float]:
        """By what it is known that a session was signed out, and for how many seconds that must be known."""
        left = int(session.partition(".")[0]) - self._clock()
        return hashlib.sha256(session.encode()).hexdigest(), max(left, 0.0) + CLOCKS_DIFFER

    def form_token(self, caller: Caller) -> str:
        """What a form shows to prove that it was made for this session."""
        key = self._key(caller.name)
        return "" if key is None or caller.session is None else key.sign("form", caller.session)

    def is_form_of(self, caller: Caller, shown: str) -> bool:
        """Whether a form was made for this session."""
        right = self.form_token(caller)
        return bool(right) and hmac.compare_digest(right.encode(), shown.encode("utf-8", "replace"))

    def _key(self, name: str | None) -> _Key | None:
        return next((key for key in self._keys if key.name == name), None)


def _keys(role: Role, tokens: Tokens) -> list[_Key]:
    given = {role: tokens} if isinstance(tokens, str) else dict(tokens)
    for name, token in given.items():
        if not isinstance(token, str) or len(token) < SHORTEST:
            raise InvalidInput(f"the token of {name} is too short: at least {SHORTEST} characters, best made at random")
        if not name or not name.isprintable() or len(name) > 100:
            raise InvalidInput(f"a token's name is 1 to 100 printable characters, not {name!r}")
    return [_Key(name, role, _digest(token)) for name, token in given.items()]


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "replace")).digest()


def _hidden(name: str) -> str:
    return base64.urlsafe_b64encode(name.encode()).decode().rstrip("=")


def _shown(hidden: str) -> str | None:
    try:
        return base64.urlsafe_b64decode(hidden + "=" * (-len(hidden) % 4)).decode()
    except ValueError:
        return None
