"""Store a database of the newest schema: python -m tests.stored"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

from relet._store import migrate
from relet._store.fragments import Dialect
from tests import servers, supervisor
from tests.stored.loading import FOLDER

REPOSITORY = Path(__file__).resolve().parents[2]

#: Commands of psql, and a setting that older servers do not have.
LEFT_OUT = ("\\", "SET transaction_timeout")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "jobs.db")
        jobs = _fill(f"sqlite:///{path}")
        with closing(sqlite3.connect(path)) as connection:
            _store("sqlite", "\n".join(connection.iterdump()), jobs)
    with servers.running() as running:
        server = running.all()[0]
        with server.fresh_database() as url:
            jobs = _fill(url)
            _store("postgres", _dump(url), jobs)


def _fill(url: str) -> str:
    command = [sys.executable, "-m", "tests.stored.fill"]
    done = subprocess.run(command, env={**os.environ, "STORED_URL": url}, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout


def _dump(url: str) -> str:
    """The database as statements that every server knows, without the commands of psql."""
    programs = next(iter(supervisor.installs().values())).bin
    command = [str(programs / "pg_dump"), "--inserts", "--no-owner", "--no-comments", f"--dbname={url}"]
    lines = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    return "\n".join(line for line in lines if not line.startswith(LEFT_OUT))


def _store(dialect: Dialect, statements: str, jobs: str) -> None:
    version, text = list(migrate.migrations(dialect).items())[-1]
    file = FOLDER / f"{version:04}.{dialect}.sql"
    if file.exists():
        sys.exit(f"{file.name} exists: a stored database is never changed, as users have such databases")
    file.write_text(statements.replace(str(REPOSITORY), "/srv") + "\n")  # tracebacks name files
    digest = hashlib.sha256(text.encode()).hexdigest()
    file.with_suffix(".json").write_text(json.dumps({"migration": digest, "jobs": json.loads(jobs)}, indent=1) + "\n")
    print(f"stored {file.name}: {len(statements):,} bytes")


if __name__ == "__main__":
    main()
