"""`relet completion`: the scripts, tried out in the shells that are installed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from relet._cli.completion import bash, commands_of, fish, zsh
from relet._cli.main import build

COMMANDS = commands_of(build())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text("from relet import App\napp = App()\n")
    (tmp_path / "other.py").write_text("print('no app here')\n")
    return tmp_path


def completed_by_bash(folder: Path, line: str) -> list[str]:
    """What bash would offer at the end of this line; it is asked as it asks itself when tab is pressed."""
    (folder / "relet.bash").write_text(bash(COMMANDS))
    program = """
        source ./relet.bash || exit 1
        complete -p relet >&2 || exit 1
        COMP_LINE=$1 COMP_POINT=${#1} COMP_WORDS=($1) COMP_CWORD=1
        _relet relet; printf '%s\\n' "${COMPREPLY[@]}"
    """
    ran = subprocess.run(
        ["bash", "--norc", "-c", program, "bash", line], cwd=folder, capture_output=True, text=True, timeout=20
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == "complete -F _relet relet\n"
    return ran.stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("relet ", [*(command.name for command in COMMANDS), "--help", "--version"]),
        ("relet q", ["queues"]),
        ("relet jobs ", ["shop"]),
        ("relet jobs shop:app re", ["resume"]),
        ("relet jobs shop:app --queue mail re", ["resume"]),
        ("relet jobs shop:app --stat", ["--state"]),
        ("relet jobs shop:app --state ca", ["cancelled"]),
        ("relet jobs shop:app --queue ", []),
        ("relet queues shop:app ", ["list", "pause", "resume", "limit"]),
        ("relet worker shop:app --log-level w", ["warning"]),
        ("relet completion ", ["bash", "zsh", "fish"]),
        ("relet nosuch ", []),
    ],
)
def test_bash_completes(folder: Path, line: str, offered: list[str]) -> None:
    assert completed_by_bash(folder, line) == offered


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh_takes_its_script(folder: Path) -> None:
    (folder / "_relet").write_text(zsh(COMMANDS))
    program = "autoload -Uz compinit && compinit -D -u && source ./_relet && print -r -- $_comps[relet]"
    ran = subprocess.run(["zsh", "-f", "-c", program], cwd=folder, capture_output=True, text=True, timeout=20)
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
    (folder / "relet.fish").write_text(fish(COMMANDS))
    program = "source ./relet.fish; complete -C $argv[1]"
    ran = subprocess.run(
        ["fish", "--no-config", "-c", program, line], cwd=folder, capture_output=True, text=True, timeout=20
    )
    assert ([each.partition("\t")[0] for each in ran.stdout.splitlines()], ran.stderr) == (offered, "")


@pytest.mark.parametrize("script", [bash, zsh, fish])
def test_a_script_knows_every_command_verb_and_option(script: object) -> None:
    text = script(COMMANDS)  # type: ignore[operator]
    for command in COMMANDS:
        words = [command.name, *command.verbs, *(flag.name.removeprefix("--") for flag in command.flags)]
        assert [word for word in words if word not in text] == []
