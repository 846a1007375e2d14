"""Authentication by token, and by browser sessions that are derived from a token.

A token is kept as its SHA-256 hash and compared in constant time. A session cookie is signed with the hash of its
token: a session cannot be forged without the token, and replacing a token invalidates its sessions. The server stores
only sessions that were signed out, by hash, so sessions survive a restart and work with several processes.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from ..errors import InvalidInput

Role = Literal["read", "operate"]
Tokens = str | Mapping[str, str]

COOKIE = "relet_session"
SHORTEST_TOKEN = 16
SESSION_SECONDS = 12 * 3600.0
MAX_CLOCK_DIFFERENCE = 86400.0  # seconds: the largest assumed difference between our clock and the database's


@dataclass(frozen=True, slots=True)
class Principal:
    """An authenticated user, named by their token. `session` is set for browser sessions and signs their forms.

    `queues`: those that the token of workers is limited to.
    """

    name: str
    role: Role
    session: str | None = None
    queues: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class _Key:
    """A token as it is kept. Its hash is also the key that signs sessions and forms."""

    name: str
    role: Role
    digest: bytes
    queues: frozenset[str] | None = None

    def __repr__(self) -> str:
        return f"<token of {self.name}>"

    def sign(self, purpose: str, text: str) -> str:
        signature = hmac.new(self.digest, f"relet {purpose}\0{text}".encode(), "sha256").digest()
        return base64.urlsafe_b64encode(signature).decode().rstrip("=")


class TokenAuth:
    """The tokens of a server, and the sessions signed with them."""

    def __init__(
        self,
        *,
        operate: Tokens | None = None,
        read: Tokens | None = None,
        work: Tokens | None = None,
        queues: Mapping[str, Iterable[str]] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`work`: tokens of workers, which a gateway serves. `queues`: those that a token is limited to, by name."""
        self._clock = clock
        self._keys = [
            *_keys("operate", operate or {}),
            *_keys("read", read or {}),
            *_keys("operate", work or {}, queues),
        ]
        if not self._keys:
            raise InvalidInput("A token is required: pass operate=..., read=..., or both.")
        names = [key.name for key in self._keys]
        if len({*names}) < len(names) or len({key.digest for key in self._keys}) < len(names):
            raise InvalidInput("Token names and tokens must be unique: one token for each name.")

    def by_token(self, token: str) -> Principal | None:
        """The owner of a token. Compares with every token, so that the response time reveals nothing."""
        digest, found = _digest(token), None
        for key in self._keys:
            if hmac.compare_digest(key.digest, digest):
                found = Principal(key.name, key.role, queues=key.queues)
        return found

    def open_session(self, principal: Principal) -> str:
        """A cookie value that authenticates this principal for `SESSION_SECONDS` seconds."""
        key = self._key(principal.name)
        assert key is not None
        content = f"{int(self._clock() + SESSION_SECONDS)}.{secrets.token_urlsafe(16)}.{_encode_name(principal.name)}"
        return f"{content}.{key.sign('session', content)}"

    def by_session(self, value: str) -> Principal | None:
        """The principal of a session cookie; None if its signature is wrong or it has expired."""
        content, _, signature = value.rpartition(".")
        parts = content.split(".")
        if len(parts) != 3 or not parts[0].isdecimal() or len(parts[0]) > 12:
            return None
        key = self._key(_decode_name(parts[2]))
        if key is None or not hmac.compare_digest(key.sign("session", content).encode(), signature.encode()):
            return None
        return Principal(key.name, key.role, content) if int(parts[0]) > self._clock() else None

    def end_mark(self, session: str) -> tuple[str, float]:
        """The hash that marks a session as signed out, and for how many seconds the mark must be kept."""
        left = int(session.partition(".")[0]) - self._clock()
        return hashlib.sha256(session.encode()).hexdigest(), max(left, 0.0) + MAX_CLOCK_DIFFERENCE

    def form_token(self, principal: Principal) -> str:
        """The CSRF token of this session's forms; "" without a session."""
        if principal.session is None:
            return ""
        key = self._key(principal.name)
        return "" if key is None else key.sign("form", principal.session)

    def is_form_of(self, principal: Principal, token: str) -> bool:
        """True if `token` is the CSRF token of this session."""
        expected = self.form_token(principal)
        return bool(expected) and hmac.compare_digest(expected.encode(), token.encode("utf-8", "replace"))

    def _key(self, name: str | None) -> _Key | None:
        return next((key for key in self._keys if key.name == name), None)


def _keys(role: Role, tokens: Tokens, queues: Mapping[str, Iterable[str]] | None = None) -> list[_Key]:
    by_name = {role: tokens} if isinstance(tokens, str) else dict(tokens)
    for name, token in by_name.items():
        if not isinstance(token, str) or len(token) < SHORTEST_TOKEN:
            raise InvalidInput(
                f"The token of {name} is too short. Use at least {SHORTEST_TOKEN} characters, generated at random."
            )
        if not name or not name.isprintable() or len(name) > 100:
            raise InvalidInput(f"A token's name must be 1 to 100 printable characters, not {name!r}.")
    scopes = {name: frozenset(names) for name, names in (queues or {}).items()}
    return [_Key(name, role, _digest(token), scopes.get(name)) for name, token in by_name.items()]


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "replace")).digest()


def _encode_name(name: str) -> str:
    return base64.urlsafe_b64encode(name.encode()).decode().rstrip("=")


def _decode_name(encoded: str) -> str | None:
    try:
        return base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode()
    except ValueError:
        return None
