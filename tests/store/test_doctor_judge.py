"""Findings of the doctor from figures: thresholds and texts, without a database."""

from __future__ import annotations

from typing import Any

import pytest

from relet._core.finding import Finding, Level
from relet._core.text import duration, listed, size
from relet._store.doctor import expected, judge, judge_file, judge_server, judge_tables
from relet._store.doctor.judge_file import FileLocation, Pages
from relet._store.doctor.judge_server import Connections, Holder, ServerFacts
from relet._store.doctor.judge_tables import Autovacuum, Index, Table

MB, GB = 1_000_000, 1_000_000_000
HEALTHY = ServerFacts(180000, "18.0", "ada", "shop", False, False, "default", True, True, "on")
ON = Autovacuum(True, True, 50, 0.2)
NOTHING = expected.Objects()


def levels(findings: list[Finding]) -> list[Level]:
    for one in findings:
        assert one.level in ("ok", "info") or one.advice, "a complaint without advice"
    return [one.level for one in findings]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0, "0 s"), (0.0424, "42 ms"), (3.52, "3.5 s"), (61, "1 min 1 s"), (19200, "5 h 20 min"), (273600, "3 d 4 h")],
)
def test_durations_read_well(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 bytes"), (812, "812 bytes"), (3_400_000, "3.4 MB"), (5e15, "5000.0 TB")]
)
def test_sizes_read_well(number: float, text: str) -> None:
    assert size(number) == text


def test_long_lists_are_cut() -> None:
    assert listed(["a", "b"]) == "a, b"
    assert listed(list("abcdef"), 2) == "a, b and 4 more"


# clocks: asked at 1000.0, answered at 1000.2


@pytest.mark.parametrize(
    ("there", "level", "words"),
    [
        (1000.1, "ok", "0 ms"),
        (1001.15, "ok", "1 s ahead"),  # it may be less than a second: the answer took 0.2 s
        (1001.25, "info", "ahead of"),
        (998.8, "info", "1.3 s behind"),
        (1009.0, "info", "8.9 s ahead"),
        (1010.3, "warning", "10.2 s ahead"),
        (400.0, "warning", "10 min behind"),
    ],
)
def test_the_difference_of_clocks_is_measured_against_leases(there: float, level: Level, words: str) -> None:
    (finding,) = judge.clock(1000.0, there, 1000.2)
    assert finding.level == level
    assert words in finding.text
    assert (finding.advice is None) == (level == "ok")


def test_a_short_lease_makes_a_small_difference_matter() -> None:
    assert levels(judge.clock(0.0, 2.0, 0.0, lease=5.0)) == ["warning"]


# the server


@pytest.mark.parametrize(
    ("facts", "check", "level"),
    [
        (HEALTHY, None, "ok"),
        (HEALTHY._replace(number=130022, version="13.22"), "server", "error"),
        (HEALTHY._replace(standby=True), "writable", "error"),
        (HEALTHY._replace(read_only=True, read_only_by="user"), "writable", "error"),
        (HEALTHY._replace(fsync=False), "durability", "warning"),
        (HEALTHY._replace(full_pages=False), "durability", "info"),
        (HEALTHY._replace(synchronous="off"), "durability", "info"),
    ],
)
def test_the_findings_about_a_server_follow_from_its_facts(facts: ServerFacts, check: str | None, level: Level) -> None:
    findings = judge_server.server(facts)
    assert [one.check for one in findings] == ["server", "writable", "durability"]
    assert {one.check: one.level for one in findings if one.level != "ok"} == ({check: level} if check else {})


@pytest.mark.parametrize(
    ("holder", "words", "advice"),
    [
        (Holder("session", "42", "shell", "active", "ada", 400.0, 9), "process 42", "pg_terminate_backend(42)"),
        (Holder("session", "42", "", "", "bob", None, 200_000), "state not visible", "pg_terminate_backend(42)"),
        (Holder("prepared", "p'1", "", "", "ada", 400.0, 9), "prepared transaction 'p?1'", "rollback prepared 'p?1'"),
        (Holder("slot", "s1", "", "inactive", "", None, 200_000), "slot 's1' (inactive)", "pg_drop_replication_slot"),
        (Holder("standby", "7", "s2", "streaming", "r", None, 200_000), "hot_standby_feedback", "on the standby"),
    ],
)
def test_whatever_holds_back_vacuum_is_named(holder: Holder, words: str, advice: str) -> None:
    (finding,) = judge_server.holders([holder])
    assert levels([finding]) == ["warning"]
    assert words in finding.text
    assert advice in str(finding.advice)
    assert f"{holder.age:,} transactions" in finding.text


def test_a_transaction_that_has_just_begun_holds_nothing_back() -> None:
    young = Holder("session", "42", "shell", "active", "ada", 30.0, 500_000)
    slot = Holder("slot", "s1", "", "active", "", None, 500)
    (finding,) = judge_server.holders([young, slot])
    assert (finding.level, finding.text) == (
        "ok",
        "nothing holds back vacuum; the oldest open transaction is 30 s old",
    )


def test_of_many_old_transactions_the_oldest_are_named() -> None:
    many = [Holder("session", str(n), "", "idle in transaction", "ada", 300.0 + n, 1) for n in range(8)]
    *named, rest = judge_server.holders(many)
    assert [one.text.split()[5] for one in named] == ["7", "6", "5", "4", "3"]
    assert "3 more" in rest.text


@pytest.mark.parametrize(("used", "level"), [(0.0, "ok"), (0.2, "ok"), (0.3, "warning"), (0.9, "error")])
def test_the_queue_of_notifications(used: float, level: Level) -> None:
    assert levels(judge_server.notifications(used)) == [level]


@pytest.mark.parametrize(
    ("facts", "expected_levels"),
    [
        (Connections(20, 100, 3, -1, 20, -1, 5), ["ok"]),
        (Connections(90, 100, 3, -1, 20, -1, 5), ["warning"]),
        (Connections(20, 100, 3, 22, 20, -1, 5), ["warning"]),
        (Connections(20, 100, 3, 22, 20, 6, 5), ["warning", "warning"]),
        (Connections(6, 13, 3, -1, 6, -1, 5), ["ok"]),
    ],
)
def test_room_for_connections(facts: Connections, expected_levels: list[Level]) -> None:
    assert levels(judge_server.connections(facts)) == expected_levels


@pytest.mark.parametrize(
    ("pooled", "ours", "others", "words"),
    [
        (False, [1], [], "no pooler found"),
        (True, [1, 1, 1], [1, 1], "transaction mode"),
        (True, [1, 3, 1], [2, 2], "transaction mode"),
        (True, [1, 1, 1], [2, 2], "probably in session mode"),
        (True, [1], [None], "mode unknown"),
    ],
)
def test_the_processes_behind_two_connections_show_a_pooler(
    pooled: bool, ours: list[int], others: list[int | None], words: str
) -> None:
    (finding,) = judge_server.pooler(pooled, ours, others)
    assert words in finding.text


# tables


def table(name: str = "jobs", **facts: object) -> Table:
    defaults = {"partition": False, "live": 0, "dead": 0, "vacuumed": None, "autovacuumed": None, "bytes": 0}
    return Table(**{"name": name, **defaults, "width": 300.0, "written": "[]", **facts})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("facts", "level"),
    [
        ({"dead": 9_999}, "ok"),
        ({"dead": 10_000}, "warning"),
        ({"dead": 10_000, "vacuumed": 60.0}, "ok"),  # autovacuum runs once a minute: a busy store has as many
        ({"dead": 10_000, "vacuumed": 600.0}, "warning"),
        ({"dead": 10_000, "live": 1_000_000}, "ok"),  # autovacuum is not due yet
        ({"dead": 400_000, "vacuumed": 60.0}, "warning"),  # it ran, and could not remove them
        ({"dead": 10_000, "written": '["autovacuum_vacuum_threshold=5000"]'}, "ok"),
    ],
)
def test_dead_rows_matter_when_vacuum_should_have_come(facts: dict[str, Any], level: Level) -> None:
    (finding,) = judge_tables.dead_rows([table(**facts)], ON, 86400.0, "jobs")
    assert finding.level == level
    assert levels([finding])


def test_a_schema_that_was_just_made_has_not_missed_a_vacuum() -> None:
    assert levels(judge_tables.dead_rows([table(dead=20_000)], ON, 60.0, "jobs")) == ["ok"]


@pytest.mark.parametrize(
    ("facts", "level"),
    [
        ({"bytes": 60 * MB}, "ok"),  # small enough to stay in memory
        ({"bytes": 100 * MB}, "info"),
        ({"bytes": 100 * MB, "live": 100_000}, "ok"),
        ({"bytes": 2 * GB, "live": 100_000}, "warning"),
    ],
)
def test_a_bloated_table_is_one_that_costs(facts: dict[str, Any], level: Level) -> None:
    assert levels(judge_tables.bloat([table(**facts)], [], "jobs")) == [level]


@pytest.mark.parametrize(
    ("bytes", "entries", "level"),
    [(60 * MB, 0, "ok"), (100 * MB, 10, "info"), (100 * MB, 1_000_000, "ok"), (2 * GB, 10, "warning"), (GB, -1, "ok")],
)
def test_a_bloated_index_is_one_that_costs(bytes: int, entries: float, level: Level) -> None:
    assert levels(judge_tables.bloat([], [Index("jobs_claim", "jobs", bytes, entries, 24.0)], "jobs")) == [level]


@pytest.mark.parametrize(
    ("server", "which"),
    [(ON._replace(on=False), "autovacuum is off"), (ON._replace(counts=False), "track_counts is off")],
)
def test_autovacuum_that_is_off_for_all(server: Autovacuum, which: str) -> None:
    (finding,) = judge_tables.autovacuum(server, [table()], NOTHING, "jobs")
    assert levels([finding]) == ["error"]
    assert which in finding.text


def test_objects_that_a_migration_drops_are_not_missed() -> None:
    made = ["create table {schema}.t (id int primary key) with (fillfactor = 10)", "create index t_a on {schema}.t (a)"]
    found = expected.made_by([*made, "drop index {schema}.t_a"], '"s"')
    assert found.of("index") == ["migration_lock_pkey", "migrations_pkey", "t_pkey"]
    assert found.options == {"t": {"fillfactor": "10"}}


# files


@pytest.mark.parametrize(("version", "level"), [((3, 40, 1), "warning"), ((3, 51, 3), "ok"), ((3, 52, 0), "ok")])
def test_the_library_of_sqlite(version: tuple[int, int, int], level: Level) -> None:
    assert levels(judge_file.library(version)) == [level]


@pytest.mark.parametrize(
    ("location", "expected_levels"),
    [
        (FileLocation("/x.db", "ext4", True, True, 10 * GB), ["ok", "ok", "ok"]),
        (FileLocation("/x.db", "tmpfs", True, True, None), ["info", "ok"]),
        (FileLocation("/x.db", "cifs", True, True, 10 * GB), ["error", "ok", "ok"]),
        (FileLocation("/x.db", "ext4", False, True, 10 * GB), ["ok", "error", "ok"]),
        (FileLocation("/x.db", "ext4", True, False, 10 * GB), ["ok", "error", "ok"]),
        (FileLocation("/x.db", "ext4", True, True, 100 * MB), ["ok", "ok", "warning"]),
        (FileLocation("/x.db", "ext4", True, True, 1 * MB), ["ok", "ok", "error"]),
    ],
)
def test_where_a_file_may_lie(location: FileLocation, expected_levels: list[Level]) -> None:
    assert levels(judge_file.location(location)) == expected_levels


@pytest.mark.parametrize(
    ("number", "free", "level"), [(1000, 900, "ok"), (100_000, 90_000, "info"), (1_000_000, 90_000, "ok")]
)
def test_free_pages_matter_when_they_are_more_than_half_of_the_file(number: int, free: int, level: Level) -> None:
    assert levels(judge_file.pages(Pages("wal", 4096, number, free), "FULL"))[2] == level
