"""A money transfer that ends in its own transaction: the money moves once, however often its worker dies.

    python transfer.py                                        # SQLite, in this directory
    RELET_URL=postgresql://localhost/shop python transfer.py  # PostgreSQL

The accounts are in the database of the jobs. The job ends in the transaction that moves the money, so both happen or
neither. The demo kills workers with -9 while they transfer, and then counts the money.
"""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from typing import Any

import psycopg

from relet import App, Attempt, Fail, State

URL = os.environ.get("RELET_URL", "sqlite:///relet.db")
app = App(URL)
MARK = "?" if URL.startswith("sqlite") else "%s"
TAKE = f"update accounts set cents = cents - {MARK} where name = {MARK} and cents >= {MARK}"  # noqa: S608
GIVE = f"update accounts set cents = cents + {MARK} where name = {MARK}"  # noqa: S608


@app.task(queue="transfers", max_attempts=100)
def transfer(attempt: Attempt, source: str, to: str, cents: int) -> str:
    with attempt.transaction() as tx:
        if tx.connection.execute(TAKE, (cents, source, cents)).rowcount == 0:
            raise Fail(f"{source} has less than {cents}")  # rolls back; no retry
        if "DIE" in os.environ and attempt.version % 2:
            os._exit(9)  # half of the work is done, and not committed
        _ = tx.connection.execute(GIVE, (cents, to))
        _ = tx.enqueue(receipt.draft(source, to, cents))
        return tx.succeed(f"{source} paid {to} {cents}")


@app.task(queue="transfers")
def receipt(source: str, to: str, cents: int) -> None:
    """Enqueued in the same transaction: one receipt for each transfer that has happened."""


def connect() -> Any:
    return sqlite3.connect(URL.removeprefix("sqlite:///")) if MARK == "?" else psycopg.connect(URL)


def balances() -> dict[str, int]:
    with closing(connect()) as connection:
        return dict(connection.execute("select name, cents from accounts order by name").fetchall())


def open_accounts() -> None:
    with closing(connect()) as connection:
        connection.execute("drop table if exists accounts")
        connection.execute("create table accounts (name text primary key, cents integer not null)")
        connection.execute("insert into accounts values ('ada', 1000), ('bob', 0)")
        connection.commit()


def kill_workers(number: int) -> int:
    """Start workers, one after the other, each of which dies in the middle of a transfer. Returns how many died."""
    command = [sys.executable, __file__, "worker"]
    return sum(subprocess.run(command, env={**os.environ, "DIE": "1"}).returncode == 9 for _ in range(number))  # noqa: S603


def main() -> None:
    if sys.argv[1:] == ["worker"]:
        with app.worker(lease=1.0, concurrency=1, poll_interval=0.1):
            app.client.wait_many(app.client.jobs(queue="transfers").jobs)
        return
    app.client.migrate()
    open_accounts()
    earlier = app.client.count(task="receipt")  # of an earlier run in this database
    jobs = app.client.enqueue_many([transfer.draft("ada", "bob", 100) for _ in range(12)])
    print(f"workers that died: {kill_workers(3)}; balances: {balances()}")
    with app.worker(lease=1.0, poll_interval=0.1):
        ended = app.client.wait_many(jobs, timeout=120)
    succeeded = sum(job.state is State.SUCCEEDED for job in ended)
    print(f"transfers: {succeeded}, refused: {sorted({job.error for job in ended if job.error})}")
    print(f"receipts: {app.client.count(task='receipt') - earlier}, balances: {balances()}")


if __name__ == "__main__":
    main()
