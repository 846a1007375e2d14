"""The rules for time, randomness, threads and waits: refused and accepted code."""

from __future__ import annotations

import ast

import pytest

from tools import check_seams
from tools.check_seams import problems

REFUSED = [
    "import time",
    "import time as clock",
    "def f():\n    from random import random",
    "from uuid import uuid4",
    "import secrets",
    "from concurrent.futures import ThreadPoolExecutor",
    "from threading import Thread as T",
    "import threading as t",
    "import threading\nthread = threading.Thread(target=f)",
    "import threading\nmake = threading.Event",
    "from datetime import datetime\nnow = datetime.now(UTC)",
    "import datetime\nnow = datetime.datetime.utcnow()",
    "from datetime import date\ntoday = date.today()",
    "import os\ntoken = os.urandom(4)",
    "from .._tasks.task import new_id",
]

WAITS = ["self._stop.wait(1.0)", "SYSTEM.sleep(1.0)", "thread.join()", "while not stop.wait(1): pass"]

FINE = [
    "import threading\nlock = threading.Lock()",
    "import threading\nthread: threading.Thread | None = None",
    "import threading\ndef f(thread: threading.Thread) -> threading.Event: ...",
    "from datetime import datetime\nmoment = datetime.fromtimestamp(5)",
    "now = self._now()",
    "text = ', '.join(names)",
    "from .._system import SYSTEM\nSYSTEM.new_id()",
]


@pytest.mark.parametrize("text", REFUSED)
@pytest.mark.parametrize("path", ["_worker/producer.py", "_store/pool.py"])
def test_calls_that_bypass_the_system_are_found(path: str, text: str) -> None:
    assert len(list(problems(path, ast.parse(text)))) == 1


@pytest.mark.parametrize("text", WAITS)
def test_a_wait_in_a_step_is_found(text: str) -> None:
    assert len(list(problems("_worker/producer.py", ast.parse(text)))) == 1
    assert list(problems("_worker/loop.py", ast.parse(text))) == []
    assert list(problems("_store/pool.py", ast.parse(text))) == []


@pytest.mark.parametrize("text", FINE)
def test_calls_that_do_not_are_accepted(text: str) -> None:
    assert list(problems("_worker/producer.py", ast.parse(text))) == []


def test_worker_and_store_keep_the_rules(capsys: pytest.CaptureFixture[str]) -> None:
    assert check_seams.main() == 0, capsys.readouterr().out
