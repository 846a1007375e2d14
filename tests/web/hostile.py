"""A store in which every text that could come from outside is an attack, also where the client would refuse it."""

from __future__ import annotations

import json
import sqlite3
import time
from contextlib import closing
from pathlib import Path

from relet import App
from tests.web import example_data

MARK = "zq7x"  # in every attack, to be found again
TAGS = "</script></title></textarea><script>alert(1)</script><img src=x onerror=alert(1)>"
ATTACK = f"{MARK}{TAGS}\"'`&lt; \u202e\u2066 \x1b[31m\x07"
LINK = f"javascript:alert('{MARK}')//\"><b onmouseover=alert(1)>"
LONG = ATTACK + "\u0627\u0644" * 40_000


def build(path: Path) -> App:
    """The shop's store, with all its texts replaced."""
    app = example_data.build(f"sqlite:///{path}")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("pragma ignore_check_constraints = on")
        for table, columns in TEXTS.items():
            for column in columns:
                connection.execute(f"update relet_{table} set {column} = ? where {column} is not null", (ATTACK,))
        _jobs(connection)
        _others(connection)
    return app


TEXTS = {
    "jobs": ("error", "worker", "group_key", "awaits"),
    "finished": ("error", "worker", "group_key"),
    "attempts": ("error", "worker"),
    "dependencies": ("result", "task"),
    "steps": ("result",),
    "signals": ("value",),
    "ticks": ("note",),
    "audit": ("who", "subject"),
}


def _jobs(connection: sqlite3.Connection) -> None:
    """The texts of jobs. Names stay different, so that there is still one of each."""
    payload = json.dumps({ATTACK: [LINK, ATTACK]})
    large = json.dumps({ATTACK: [LINK, ATTACK], "long": LONG})
    progress = json.dumps({"done": 1, "total": 3, "note": ATTACK})
    connection.execute("update relet_jobs set payload = ?, progress = ?, error = ?", (payload, progress, ATTACK))
    connection.execute("update relet_finished set payload = ?, result = ?, error = ?", (payload, payload, ATTACK))
    for table in ("jobs", "finished"):  # of one job, the newest, everything is large
        newest = f"(select max(id) from relet_{table})"
        connection.execute(f"update relet_{table} set payload = ?, error = ? where id = {newest}", (large, LONG))
    for table in ("jobs", "finished"):
        connection.execute(f"update relet_{table} set task = task || ?, queue = queue || ?", (ATTACK, ATTACK))
        connection.execute(
            f"update relet_{table} set target = ? || target || ? where target is not null", (LINK, ATTACK)
        )
        connection.execute(f"update relet_{table} set unique_key = ?", (ATTACK,))
    connection.execute("update relet_jobs set group_key = ?", (ATTACK,))
    for table in ("steps", "signals"):
        connection.execute(f"update relet_{table} set name = name || ?", (ATTACK,))


def _others(connection: sqlite3.Connection) -> None:
    connection.execute("update relet_queues set queue = queue || ? where queue <> '*'", (ATTACK,))
    connection.execute("insert into relet_rates values (?, ?, 5, 60)", ("billing" + ATTACK, ATTACK))
    connection.execute("update relet_group_limits set queue = queue || ?, group_key = ?", (ATTACK, ATTACK))
    connection.execute("update relet_audit set what = ?, detail = ?", (ATTACK, json.dumps({ATTACK: LINK})))
    connection.execute("update relet_stats set queue = queue || ?", (ATTACK,))
    about = {"name": ATTACK, "host": ATTACK, "pid": 1, "queues": [ATTACK], "slots": 3, "tasks": [ATTACK], "lease": 30.0}
    row = (ATTACK, ATTACK, 1, json.dumps(about | {"version": ATTACK}), 2, 0, "of late", time.time(), time.time())
    connection.execute("insert into relet_workers values (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
    (text,) = connection.execute("select definition from relet_schedules limit 1").fetchone()
    definition = json.loads(text)
    definition["draft"] |= {"task": ATTACK, "queue": ATTACK, "payload": json.dumps([ATTACK])}
    connection.execute("update relet_schedules set definition = ?, task = ?", (json.dumps(definition), ATTACK))
    connection.execute("update relet_schedules set name = name || ?", (ATTACK,))
    connection.execute("update relet_ticks set schedule = schedule || ?", (ATTACK,))
