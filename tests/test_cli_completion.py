"""`leasehold completion`: the scripts, tried out in the shells that are installed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from leasehold.cli.completion import bash, commands_of, fish, zsh
from leasehold.cli.main import build

COMMANDS = commands_of(build())


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text("from leasehold import App\napp = App()\n")
    (tmp_path / "other.py").write_text("print('no app here')\n")
    return tmp_path


def completed_by_bash(place: Path, line: str) -> list[str]:
    """What bash would offer at the end of this line; it is asked as it asks itself when tab is pressed."""
    (place / "leasehold.bash").write_text(bash(COMMANDS))
    program = """
        source ./leasehold.bash || exit 1
        complete -p leasehold >&2 || exit 1
        COMP_LINE=$1 COMP_POINT=${#1} COMP_WORDS=($1) COMP_CWORD=1
        _leasehold leasehold; printf '%s\\n' "${COMPREPLY[@]}"
    """
    ran = subprocess.run(
        ["bash", "--norc", "-c", program, "bash", line], cwd=place, capture_output=True, text=True, timeout=20
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == "complete -F _leasehold leasehold\n"
    return ran.stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("leasehold ", [*(command.name for command in COMMANDS), "--help", "--version"]),
        ("leasehold q", ["queues"]),
        ("leasehold jobs ", ["shop"]),
        ("leasehold jobs shop:app re", ["resume"]),
        ("leasehold jobs shop:app --queue mail re", ["resume"]),
        ("leasehold jobs shop:app --stat", ["--state"]),
        ("leasehold jobs shop:app --state ca", ["cancelled"]),
        ("leasehold jobs shop:app --queue ", []),
        ("leasehold queues shop:app ", ["list", "pause", "resume", "limit"]),
        ("leasehold worker shop:app --log-level w", ["warning"]),
        ("leasehold completion ", ["bash", "zsh", "fish"]),
        ("leasehold nosuch ", []),
    ],
)
def test_bash_completes(place: Path, line: str, offered: list[str]) -> None:
    assert completed_by_bash(place, line) == offered


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh_takes_its_script(place: Path) -> None:
    (place / "_leasehold").write_text(zsh(COMMANDS))
    program = "autoload -Uz compinit && compinit -D -u && source ./_leasehold && print -r -- $_comps[leasehold]"
    ran = subprocess.run(["zsh", "-f", "-c", program], cwd=place, capture_output=True, text=True, timeout=20)
    assert (ran.stdout, ran.stderr) == ("_leasehold\n", "")


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("leasehold q", ["queues"]),
        ("leasehold jobs ", ["shop"]),
        ("leasehold jobs shop:app res", ["resume"]),
        ("leasehold jobs shop:app --state ca", ["cancelled"]),
    ],
)
def test_fish_completes(place: Path, line: str, offered: list[str]) -> None:
    (place / "leasehold.fish").write_text(fish(COMMANDS))
    program = "source ./leasehold.fish; complete -C $argv[1]"
    ran = subprocess.run(
        ["fish", "--no-config", "-c", program, line], cwd=place, capture_output=True, text=True, timeout=20
    )
    assert ([each.partition("\t")[0] for each in ran.stdout.splitlines()], ran.stderr) == (offered, "")


@pytest.mark.parametrize("script", [bash, zsh, fish])
def test_a_script_knows_every_command_verb_and_option(script: object) -> None:
    text = script(COMMANDS)  # type: ignore[operator]
    for command in COMMANDS:
        words = [command.name, *command.verbs, *(flag.name.removeprefix("--") for flag in command.flags)]
        assert [word for word in words if word not in text] == []
