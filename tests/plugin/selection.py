"""The fast suite and `--all`.

The fast suite runs the strongest test of each guarantee. It leaves out:

- tests marked `long`; `long("sqlite")` leaves out only the cases with that parameter, `long("postgres")` those on
  any PostgreSQL server;
- repetitions on a further PostgreSQL server, unless the test is marked `every_server`;
- repetitions on PostgreSQL of what runs on SQLite, in tests of what is built upon the store, unless the test is marked
  `every_server` or `every_store`, or docs/guarantees.md names it;
- repetitions on a SQLite file of what runs in memory or on PostgreSQL, unless the test is marked `every_store`.

`--all` runs everything. A test that the command line names by its id (`file.py::test`) always runs.

A test that repeats something many times does so less often in the fast suite: `rounds(10, all=50)`.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests import servers

LONG = "long cases"
OTHER_SERVER = "repetitions on other PostgreSQL servers"
OTHER_STORE = "repetitions on a SQLite file"
UPON_THE_STORE = "repetitions on PostgreSQL of tests of what is built upon the store"
SERVERS = servers.names()
VARIANTS = servers.variants()
SERIALIZABLE = ("serializable", "cockroach")
STORES = ["memory", "sqlite", *SERVERS]
ROOT = Path(__file__).parents[2]
TESTS_OF_STORES = ("tests/store/", "tests/cuts/", "tests/torture/", "tests/simulation/")
LEFT_OUT = pytest.StashKey[Counter[str]]()

_run: dict[str, bool] = {"all": False}


def rounds(fast: int, *, all: int) -> int:
    """How many rounds, jobs or examples: `fast` of them in the fast suite, and all of them with `--all`."""
    return all if _run["all"] else fast


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--all", action="store_true", help="also run long cases, and every test on every PostgreSQL server"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "long(*parameters): takes too long for the fast suite; runs with --all")
    config.addinivalue_line("markers", "every_server: the server's version matters; runs on all of them each time")
    config.addinivalue_line("markers", "other_server: of a parameter that repeats a test on another server")
    config.addinivalue_line("markers", "every_store: the kind of store matters; runs on all kinds each time")
    config.addinivalue_line("markers", "partitioned: is about what only the variant postgres of a schema has")
    config.addinivalue_line("markers", "read_committed: interleaves statements as no serializable transaction would")
    config.addinivalue_line("markers", "other_store: of a parameter that repeats a test on a SQLite file")
    config.stash[LEFT_OUT] = Counter()
    _run["all"] = bool(config.getoption("--all"))


@pytest.hookimpl(trylast=True)  # after -k and -m have chosen
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    _leave_out_features_that_variants_lack(items)
    if config.getoption("--all") or any("::" in argument for argument in config.args):
        return
    kept, left_out = [], []
    reasons = [_reason(item) for item in items]
    on_sqlite = {
        _without_store(item)
        for item, reason in zip(items, reasons, strict=True)
        if not reason and _store_of(item) in ("memory", "sqlite")
    }
    for item, reason in zip(items, reasons, strict=True):
        if reason is None and _is_upon_the_store(item) and _without_store(item) in on_sqlite:
            reason = UPON_THE_STORE
        if reason is None:
            kept.append(item)
        else:
            left_out.append(item)
            config.stash[LEFT_OUT][reason] += 1
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = kept


def _reason(item: pytest.Item) -> str | None:
    if any(_is_meant(mark, item) for mark in item.iter_markers("long")):
        return LONG
    if item.get_closest_marker("other_server") is not None and item.get_closest_marker("every_server") is None:
        return OTHER_SERVER
    if item.get_closest_marker("other_store") is not None and item.get_closest_marker("every_store") is None:
        return OTHER_STORE
    return None


def _leave_out_features_that_variants_lack(items: list[pytest.Item]) -> None:
    for item in items:
        store = _store_of(item)
        if store in VARIANTS and item.get_closest_marker("partitioned") is not None:
            item.add_marker(pytest.mark.skip(reason="the variant rows has neither partitions nor SQL functions"))
        if store in SERIALIZABLE and item.get_closest_marker("read_committed") is not None:
            item.add_marker(pytest.mark.skip(reason="a serializable transaction would be refused and repeated"))


def _is_upon_the_store(item: pytest.Item) -> bool:
    """Whether a case runs on PostgreSQL and is a test of a client, a worker or a program, and of no guarantee."""
    return (
        _store_of(item) in SERVERS
        and not item.nodeid.startswith(TESTS_OF_STORES)
        and item.get_closest_marker("every_server") is None
        and item.get_closest_marker("every_store") is None
        and item.nodeid.partition("[")[0] not in _proofs()
    )


def _store_of(item: pytest.Item) -> str | None:
    parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return next((value for value in parameters if isinstance(value, str) and value in STORES), None)


def _without_store(item: pytest.Item) -> tuple[Any, ...] | None:
    """The test and its other parameters: cases on different stores share them."""
    if _store_of(item) is None:
        return None
    params = item.callspec.params  # type: ignore[attr-defined]
    others = [(name, id(value)) for name, value in params.items() if value not in STORES]
    return item.nodeid.partition("[")[0], *others


@cache
def _proofs() -> set[str]:
    """The tests that docs/guarantees.md names."""
    return set(re.findall(r"`(tests/[\w/]+\.py::test_\w+)`", (ROOT / "docs" / "guarantees.md").read_text()))


def _is_meant(mark: pytest.Mark, item: pytest.Item) -> bool:
    """Whether a mark names a parameter of this case, or none at all."""
    parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
    meant = [*mark.args, *(SERVERS if "postgres" in mark.args else ())]
    return not mark.args or any(value in meant for value in parameters)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):  # a worker of xdist
        left_out: Counter[str] = session.config.stash[LEFT_OUT]
        session.config.workeroutput["left_out"] = dict(left_out)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """Every worker of xdist collects the same tests, so the count of any one is the count of the run."""
    node.config.stash[LEFT_OUT] = Counter(getattr(node, "workeroutput", {}).get("left_out", {}))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    skipped = Counter(_skip_reason(report) for report in terminalreporter.stats.get("skipped", []))
    left_out = config.stash[LEFT_OUT]
    if not skipped and not left_out:
        return
    terminalreporter.section("not run")
    for reason, count in (*skipped.most_common(), *left_out.most_common()):
        terminalreporter.write_line(f"{count:5}  {reason}")
    if left_out:
        terminalreporter.write_line("./dev test --all runs long cases, every server and every interpreter")


def _skip_reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    """The text of a skip; `longrepr` is a file, a line and that text."""
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return text.removeprefix("Skipped: ")
