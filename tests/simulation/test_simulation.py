"""Seeds of the simulation, in processes whose hashes are those of any other run."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests import servers
from tests.plugin.selection import rounds


def simulate(*arguments: str) -> str:
    command = [sys.executable, "-m", "tests.simulation", *arguments]
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_no_seed_breaks_an_invariant() -> None:
    assert "0 seeds broke an invariant" in simulate("--seeds", str(rounds(12, all=20)), "--processes", "1")


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_no_seed_of_many_breaks_an_invariant() -> None:
    assert "0 seeds broke an invariant" in simulate("--seeds", "500", "--first", "1000")


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.skipif(not servers.local_names(), reason=servers.HOW_TO_GET_ONE)
def test_no_seed_breaks_an_invariant_on_postgres() -> None:
    assert "0 seeds broke an invariant" in simulate("--postgres", "--seeds", "20")


def test_a_seed_gives_the_same_trace_each_time() -> None:
    script = (
        "import logging; logging.disable(50)\n"
        "from tests.simulation.run import simulate\n"
        "print(*[simulate(seed).trace for seed in (1, 2, 3)])"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    traces = {
        subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=True
        ).stdout
        for _ in range(2)
    }
    assert len(traces) == 1
