"""The settings of a run. Its processes read them from a file, which an environment variable names."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
from msgspec import Struct, structs

from .facts import TENANT

VARIABLE = "RELET_TORTURE"


class Settings(Struct, frozen=True):
    """`url`: as a process reaches the database, behind its proxy if there is one. `direct`: without a proxy. `web`: the
    address of the HTTP API, if it runs; `clock`: a file with the seconds by which the clock of a worker is wrong."""

    url: str
    direct: str
    schema: str
    folder: str
    seed: int
    seconds: float
    lease: float = 3.0
    web: str = ""
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


def load() -> Settings:
    return msgspec.json.decode(Path(os.environ[VARIABLE]).read_bytes(), type=Settings)
