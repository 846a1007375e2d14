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


@contextmanager
def bouncing(server_url: str, mode: str, size: int) -> Iterator[str]:
    """The URL of the same database, as it is reached through a pooler."""
    assert BOUNCER is not None
    place = Path(parse_qs(urlsplit(server_url).query)["host"][0]).parent / f"bouncer-{uuid.uuid4().hex[:8]}"
    place.mkdir(mode=0o755)
    parts = urlsplit(server_url)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    host = parse_qs(parts.query)["host"][0]
    config = place / "pgbouncer.ini"
    config.write_text(
        CONFIG.format(host=host, server_port=parts.port or 5432, user=parts.username, port=port, size=size, mode=mode)
    )
    who = ["-u", "postgres" if _has_user("postgres") else "nobody"] if os.geteuid() == 0 else []
    with (
        (place / "log").open("wb") as log,
        subprocess.Popen([BOUNCER, *who, str(config)], stdout=log, stderr=log) as process,
    ):
        url = f"postgresql://{parts.username}@127.0.0.1:{port}{parts.path}"
        try:
            _await(url, place / "log")
            yield url
        finally:
            process.terminate()
    shutil.rmtree(place, ignore_errors=True)


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
