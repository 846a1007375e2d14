"""Each example runs by its one command, in an empty directory, on SQLite and on PostgreSQL, and shows what it promises.

The example of Django has its tests in `tests/contrib/test_django_project.py`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import PG_KINDS, SERVERS
from tests.pages import DOCS, ROOT

EXAMPLES = ROOT / "examples"
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.py"))
IN_ORDER = "received [0, 1, 2, 3, 4, 5, 6, 7]"


class Example:
    """Runs examples in a directory, on one store."""

    def __init__(self, folder: Path, url: str | None) -> None:
        self._folder = folder
        environment = {name: value for name, value in os.environ.items() if not name.startswith("RELET")}
        environment["TMPDIR"] = str(folder)  # some leave their files to be looked at
        self._environment = environment if url is None else {**environment, "RELET_URL": url}

    def run(self, name: str) -> str:
        command = [sys.executable, str(EXAMPLES / f"{name}.py")]
        ran = subprocess.run(
            command, cwd=self._folder, env=self._environment, capture_output=True, text=True, timeout=100
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout


@pytest.fixture(params=["sqlite", *PG_KINDS])
def example(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Example]:
    if request.param == "sqlite":
        yield Example(tmp_path, None)
    else:
        with request.config.stash[SERVERS].get(request.param).fresh_database() as url:
            yield Example(tmp_path, url)


def test_thumbnails_survive_a_file_that_crashes_the_decoder(example: Example) -> None:
    printed = example.run("thumbnails")
    assert len(re.findall(r"^\d\.ppm: 64x48$", printed, re.M)) == 6
    assert "broken.ppm: worker lost: its process was killed by SIGABRT" in printed
    folder = Path(re.findall(r"thumbnails in (.*): 6", printed)[0])
    assert {path.read_bytes()[:8] for path in folder.glob("*.png")} == {b"\x89PNG\r\n\x1a\n"}


def test_webhooks_arrive_in_order_after_refusals_and_a_receiver_that_is_gone_fails(example: Example) -> None:
    printed = example.run("webhooks")
    assert f"acme {IN_ORDER}, after 0" in printed
    assert f"globex {IN_ORDER}, after 2" in printed
    assert "failed: ['/initech is gone']" in printed


def test_the_report_has_the_sales_of_all_shops_each_time(example: Example) -> None:
    for _ in ("first run", "second run"):
        assert example.run("nightly_report") == "12 shops, 1200 orders, 3939.00 in all; best: shop-11\n"


def test_the_pipeline_repeats_no_call_of_the_model_and_sends_the_text_that_a_person_approved(example: Example) -> None:
    printed = example.run("llm_pipeline").splitlines()
    assert printed[0] == "to ada@example.org: We refund you in full."
    assert printed[1] == "calls of the model: 4, of which one failed"  # classify, two drafts, and the repeated one


def test_transfers_happen_once_each_though_workers_die_in_the_middle(example: Example) -> None:
    printed = example.run("transfer").splitlines()
    assert printed[0] == "workers that died: 3; balances: {'ada': 1000, 'bob': 0}"
    assert printed[1] == "transfers: 10, refused: ['ada has less than 100']"
    assert printed[2] == "receipts: 10, balances: {'ada': 0, 'bob': 1000}"


@pytest.mark.long
def test_the_transfers_can_be_run_again(example: Example) -> None:
    assert example.run("transfer") == example.run("transfer")


@pytest.mark.parametrize("name", NAMES)
def test_the_page_of_examples_and_the_example_itself_name_the_command(name: str) -> None:
    assert f"python examples/{name}.py" in (DOCS / "examples.md").read_text()
    assert (EXAMPLES / f"{name}.py").read_text().count(f"python {name}.py") == 2
