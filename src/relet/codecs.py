"""Codecs: how an app encrypts or compresses the values that it stores. `App(codecs=[...])` takes them."""

from __future__ import annotations

import base64
import zlib
from typing import TYPE_CHECKING

from ._core.codecs import Codec
from .errors import InvalidInput

if TYPE_CHECKING:
    from cryptography.fernet import MultiFernet

__all__ = ["Codec", "FernetCodec", "ZlibCodec"]

MAX_BYTES = 64 * 1024 * 1024  # the greatest payload limit


class FernetCodec:
    """Encrypts with `cryptography`'s Fernet (AES-128-CBC and HMAC-SHA256). Needs `pip install 'relet[encryption]'`.

    `keys`: the first one encrypts, each of them decrypts. `Fernet.generate_key()` makes one.
    """

    def __init__(self, *keys: str | bytes, name: str = "fernet") -> None:
        self.name = name
        self._fernet = _multi_fernet(keys)
        self._number = len(keys)

    def encode(self, data: bytes, /) -> bytes:
        """Encrypt with the first key."""
        return base64.urlsafe_b64decode(self._fernet.encrypt(data))

    def decode(self, data: bytes, /) -> bytes:
        """Decrypt with whichever key fits."""
        from cryptography.fernet import InvalidToken

        try:
            return self._fernet.decrypt(base64.urlsafe_b64encode(data))
        except InvalidToken:
            which = (
                "its key does not decrypt it" if self._number == 1 else f"none of its {self._number} keys decrypts it"
            )
            raise ValueError(f"{which}; pass the key that encrypted it, after the newest one") from None

    def __repr__(self) -> str:
        return f"<codec {self.name}: {self._number} keys>"


class ZlibCodec:
    """Compresses values of at least `min_bytes` of JSON, if that makes them smaller."""

    def __init__(self, *, level: int = 6, min_bytes: int = 1024, name: str = "zlib") -> None:
        self.name = name
        self._level = level
        self._min_bytes = min_bytes

    def encode(self, data: bytes, /) -> bytes | None:
        """Compress, unless the value is small or would not become smaller."""
        if len(data) < self._min_bytes:
            return None
        packed = zlib.compress(data, self._level)
        return packed if len(packed) * 4 < len(data) * 3 else None  # base64 adds a third

    def decode(self, data: bytes, /) -> bytes:
        """Decompress, up to the size that a payload may have."""
        unpacking = zlib.decompressobj()
        unpacked = unpacking.decompress(data, MAX_BYTES)
        if not unpacking.eof:
            raise ValueError(f"it is cut off, or larger than {MAX_BYTES:,} bytes")
        return unpacked

    def __repr__(self) -> str:
        return f"<codec {self.name}>"


def _multi_fernet(keys: tuple[str | bytes, ...]) -> MultiFernet:
    try:
        from cryptography.fernet import Fernet, MultiFernet
    except ImportError as missing:
        raise ImportError("relet.codecs.FernetCodec needs cryptography: pip install 'relet[encryption]'") from missing
    if not keys:
        raise InvalidInput("FernetCodec needs at least one key, as Fernet.generate_key() makes them")
    try:
        return MultiFernet([Fernet(key) for key in keys])
    except (ValueError, TypeError):  # the exception may show a part of the key
        raise InvalidInput(
            "a key of FernetCodec is not 32 bytes in URL-safe base64: make one with Fernet.generate_key()"
        ) from None
