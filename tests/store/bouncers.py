"""PgBouncer in front of a server for tests, in any of its modes."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest

BOUNCER = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin:/usr/local/sbin")

needs_bouncer = pytest.mark.skipif(BOUNCER is None, reason="no pgbouncer here: install Debian's package of that name")

CONFIG = """\
[databases]
* = host={host} port={server_port} user={user}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = {mode}
default_pool_size = {size}
max_client_conn = 200
"""


class Bouncer:
    """A PgBouncer in front of the server with this URL, whose connections it shares; it can be killed and started."""

    def __init__(self, server_url: str, mode: str, size: int) -> None:
        parts = urlsplit(server_url)
        host = parse_qs(parts.query)["host"][0]
        self._place = Path(host).parent / f"bouncer-{uuid.uuid4().hex[:8]}"
        self._place.mkdir(mode=0o755)
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        facts = {"host": host, "server_port": parts.port or 5432, "user": parts.username}
        (self._place / "pgbouncer.ini").write_text(CONFIG.format(**facts, port=port, size=size, mode=mode))
        #: Of the same database, as it is reached through the pooler.
        self.url = f"postgresql://{parts.username}@127.0.0.1:{port}{parts.path}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Returns once it takes connections."""
        assert BOUNCER is not None
        who = ["-u", "postgres" if _has_user("postgres") else "nobody"] if os.geteuid() == 0 else []
        with (self._place / "log").open("ab") as log:
            command = [BOUNCER, *who, str(self._place / "pgbouncer.ini")]
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        _await(self.url, self._place / "log")

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait()
        shutil.rmtree(self._place, ignore_errors=True)


@contextmanager
def bouncing(server_url: str, mode: str, size: int) -> Iterator[str]:
    """The URL of the same database, as it is reached through a pooler."""
    with Bouncer(server_url, mode, size) as bouncer:
        yield bouncer.url


def _has_user(name: str) -> bool:
    return any(user.pw_name == name for user in pwd.getpwall())


def _await(url: str, log: Path) -> None:
    give_up = time.monotonic() + 20
    while True:
        try:
            psycopg.connect(url).close()
            return
        except psycopg.OperationalError as error:
            if time.monotonic() > give_up:
                raise RuntimeError(log.read_text()) from error
            time.sleep(0.05)
