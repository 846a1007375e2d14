"""Workers behind a gateway keep the protocol: the one in Python, and the example in Node.js."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.databases import Database
from tests.gateway.workers import CHECKS, LEASE, Bench, bench

NODE = Path(__file__).parents[2] / "examples" / "node_worker" / "main.mjs"
HAS_NODE = pytest.mark.skipif(shutil.which("node") is None, reason="needs Node.js 20")
COMMANDS = [
    pytest.param([sys.executable, "-m", "tests.gateway.python_worker"], id="python"),
    pytest.param(["env", f"LEASE={LEASE:g}", "node", str(NODE)], id="node", marks=HAS_NODE),
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_worker_keeps_the_protocol(
    pg_database: Database, tmp_path: Path, command: list[str], check: Callable[[Bench], None]
) -> None:
    with bench(tmp_path, pg_database.url, pg_database.schema, command) as site:
        check(site)


def test_the_example_is_short() -> None:
    """A worker in another language is little work."""
    assert len((NODE.parent / "worker.mjs").read_text().splitlines()) < 150
