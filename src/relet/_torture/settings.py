"""The settings of a run. Its processes read them from a file, which an environment variable names."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import msgspec
from msgspec import Struct, structs

from .facts import TENANT

VARIABLE = "RELET_TORTURE"


class Settings(Struct, frozen=True):
    """`url`: as a process reaches the database, behind its proxy if there is one. `direct`: without a proxy. `web`: the
    address of the HTTP API, if it runs; `gateways`: those of the gateways. `is_remote`: the process reaches the store
    by these. `clock`: a file with the seconds by which the clock of a worker is wrong."""

    url: str
    direct: str
    schema: str
    folder: str
    seed: int
    seconds: float
    lease: float = 3.0
    web: str = ""
    gateways: tuple[str, ...] = ()
    is_remote: bool = False
    clock: str = ""

    @property
    def histories(self) -> Path:
        return Path(self.folder, "history")

    @property
    def is_sqlite(self) -> bool:
        return self.direct.startswith("sqlite:")

    @property
    def prefix(self) -> str:
        """The prefix of table names."""
        return f"{self.schema}_" if self.is_sqlite else f'"{self.schema}".'

    def of_tenant(self) -> Settings:
        """Those of the tenant: another schema, or another file."""
        if self.is_sqlite:
            path, mark, query = self.direct.partition("?")
            return structs.replace(self, direct=f"{path.removesuffix('.db')}.{TENANT}.db{mark}{query}")
        return structs.replace(self, schema=f"{self.schema}_{TENANT}")

    def save(self, name: str) -> Path:
        path = Path(self.folder, f"{name}.json")
        path.write_bytes(msgspec.json.encode(self))
        return path


def can_serve() -> bool:
    """Whether the packages are installed that the HTTP API and gateways need."""
    return all(find_spec(name) for name in ("starlette", "uvicorn"))


def load() -> Settings:
    return msgspec.json.decode(Path(os.environ[VARIABLE]).read_bytes(), type=Settings)
