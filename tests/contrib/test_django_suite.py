"""Django's own tests of its task framework, with Relet as the backend: which pass, and which do not is documented."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import django
import pytest

from tests.conftest import PG_KINDS, SERVERS

ROOT = Path(__file__).parents[2]
SOURCE = os.environ.get("RELET_DJANGO_SOURCE")
ROW = re.compile(r"^\| `(test_\w+\.\w+\.test_\w+)` \|", re.M)

pytestmark = [
    pytest.mark.every_store,
    pytest.mark.skipif(
        django.VERSION < (6, 1), reason=f"Django's tests are those of 6.1 or newer; here is {django.get_version()}"
    ),
    pytest.mark.skipif(
        not SOURCE, reason="RELET_DJANGO_SOURCE names no unpacked source of Django; ./dev test --all downloads one"
    ),
]


@pytest.fixture(params=["sqlite", *PG_KINDS])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/suite.db"
    else:
        with request.config.stash[SERVERS].get(request.param).fresh_database() as found:
            yield found


def test_all_but_the_documented_tests_pass(url: str) -> None:
    command = [sys.executable, "-m", "tests.contrib.django_suite", str(SOURCE), url]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=110)
    found: dict[str, str] = json.loads(run.stdout.splitlines()[-1])
    failed = {name: text for name, text in found.items() if text != "passed"}
    page = (ROOT / "docs" / "guides" / "django.md").read_text()
    assert failed.keys() == set(ROW.findall(page)), failed
    version = re.search(r"Django (\d+\.\d+\.\d+)'s own tests: (\d+) of (\d+) pass", page)
    assert version is not None
    if version[1] == django.get_version():
        assert (len(found) - len(failed), len(found)) == (int(version[2]), int(version[3]))
