"""A package of an extra that is not installed: commands and imports name it, and the extra to install."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

WITHOUT = """
import sys

sys.modules[{missing!r}] = None
sys.argv = ["relet", *{words!r}]
from relet._cli import main

sys.exit(main())
"""
WEB = ("jinja2", "markupsafe", "prometheus_client", "starlette", "uvicorn")


def run(text: str, folder: Path) -> tuple[int, str]:
    """The exit code of a program, and its errors."""
    done = subprocess.run([sys.executable, "-c", text], cwd=folder, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("command", "extra", "missing"),
    [*(("web", "web", name) for name in WEB), ("gateway", "gateway", "jinja2"), ("top", "cli", "rich")],
)
def test_a_command_without_a_package_names_the_extra(tmp_path: Path, command: str, extra: str, missing: str) -> None:
    url = f"sqlite:///{tmp_path / 'jobs.db'}"
    code, errors = run(WITHOUT.format(missing=missing, words=[command, url]), tmp_path)
    assert (code, errors) == (1, f"relet: relet {command} needs {missing}: pip install 'relet[{extra}]'\n")


def test_the_dashboard_without_a_package_names_the_extra(tmp_path: Path) -> None:
    """As in a program with FastAPI, which brings some of the packages."""
    code, errors = run("import sys; sys.modules['jinja2'] = None; import relet.web", tmp_path)
    assert code == 1
    assert errors.endswith("ModuleNotFoundError: relet.web needs jinja2: pip install 'relet[web]'\n")
