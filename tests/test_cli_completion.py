"""`relet completion`: the scripts, tried out in the shells that are installed."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from relet._cli.completion import FILES, FOLDER
from tests.commands import all_commands

COMMANDS = all_commands()
NAMES = [command.name for command in COMMANDS]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text("from relet import App\napp = App()\n")
    (tmp_path / "other.py").write_text("print('no app here')\n")
    return tmp_path


def completed_by_bash(folder: Path, line: str) -> list[str]:
    """The completions of bash at the end of this line. Bash itself splits it at blanks and at colons."""
    words = [*re.findall(r"[^\s:]+|:", line), *([""] if line.endswith(" ") else [])]
    program = """
        source "$1" || exit 1
        complete -p relet >&2 || exit 1
        COMP_LINE=$2 COMP_POINT=${#2} COMP_WORDS=("${@:3}") COMP_CWORD=$(($# - 3))
        _shtab_relet relet; printf '%s\\n' "${COMPREPLY[@]}"
    """
    ran = subprocess.run(
        ["bash", "--norc", "-c", program, "bash", FOLDER / FILES["bash"], line, *words],
        cwd=folder, capture_output=True, text=True, timeout=20,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == "complete -o bashdefault -F _shtab_relet relet\n"
    return ran.stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("relet ", NAMES),
        ("relet --", ["--help", "--version"]),
        ("relet q", ["queues"]),
        ("relet jobs ", ["shop"]),
        ("relet jobs shop:", []),
        ("relet jobs shop:a", []),
        ("relet jobs shop:app re", ["resume", "rerun"]),
        ("relet jobs shop:app resume ", []),
        ("relet jobs shop:app --queue mail re", ["resume", "rerun"]),
        ("relet jobs shop:app --stat", ["--state"]),
        ("relet jobs shop:app --state ca", ["cancelled"]),
        ("relet jobs shop:app --queue ", []),
        ("relet queues shop:app ", ["list", "pause", "resume", "limit"]),
        ("relet worker shop:app --log-level w", ["warning"]),
        ("relet completion ", ["bash", "zsh", "fish"]),
        ("relet nosuch ", NAMES),
    ],
)
def test_bash_completes(folder: Path, line: str, offered: list[str]) -> None:
    assert completed_by_bash(folder, line) == offered


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh_takes_its_script(folder: Path) -> None:
    program = 'fpath+=("$1") && autoload -Uz compinit && compinit -D -u && print -r -- $_comps[relet]'
    ran = subprocess.run(
        ["zsh", "-f", "-c", program, "zsh", FOLDER], cwd=folder, capture_output=True, text=True, timeout=20
    )
    assert (ran.stdout, ran.stderr) == ("_relet\n", "")


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("relet q", ["queues"]),
        ("relet jobs ", ["shop"]),
        ("relet jobs shop:app res", ["resume"]),
        ("relet jobs shop:app --state ca", ["cancelled"]),
    ],
)
def test_fish_completes(folder: Path, line: str, offered: list[str]) -> None:
    program = "source $argv[1]; complete -C $argv[2]"
    ran = subprocess.run(
        ["fish", "--no-config", "-c", program, FOLDER / FILES["fish"], line],
        cwd=folder, capture_output=True, text=True, timeout=20,
    )  # fmt: skip
    assert ([each.partition("\t")[0] for each in ran.stdout.splitlines()], ran.stderr) == (offered, "")


@pytest.mark.parametrize("shell", FILES)
def test_a_script_knows_every_command_verb_and_option(shell: str) -> None:
    text = (FOLDER / FILES[shell]).read_text()
    for command in COMMANDS:
        words = [command.name, *command.verbs, *(option.removeprefix("--") for option in command.options)]
        assert [word for word in words if word not in text] == []


@pytest.mark.long
@pytest.mark.parametrize("shell", FILES)
def test_the_command_prints_the_script_that_is_shipped(shell: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "relet", "completion", shell], capture_output=True, text=True, check=True, timeout=60
    )
    assert ran.stdout == (FOLDER / FILES[shell]).read_text()


def test_the_shipped_scripts_are_those_of_the_parser() -> None:
    """In a source distribution, shtab and the tool are missing, and the scripts cannot be out of date."""
    pytest.importorskip("shtab")
    tools = pytest.importorskip("tools.completions")
    for shell in FILES:
        assert (FOLDER / FILES[shell]).read_text() == tools.script(shell), "run ./dev completions"
