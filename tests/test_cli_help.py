"""`relet --help` and `relet COMMAND --help`: they work whatever else is wrong, and name the options that matter."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from relet._cli.examples import EXAMPLES, OVERVIEW
from relet._cli.main import build, parse
from relet._version import __version__
from tests import forks
from tests.commands import Command, all_commands
from tests.plugin.command_line import CommandLine, command_line

COMMANDS = all_commands()
BAD_URLS = ["nonsense", "postgresql://[", "sqlite:////nosuch/folder/jobs.db", "mysql://root:secret@db/shop", ""]
WITHOUT_APP = ("completion", "bench", "demo")


def printed(folder: Path, *arguments: str, url: str = BAD_URLS[0]) -> str:
    """The output of a command that must succeed."""
    command = [sys.executable, "-m", "relet", *arguments]
    ran = forks.run(command, cwd=folder, env={**os.environ, "RELET_URL": url, "COLUMNS": "120"}, timeout=60)
    assert (ran.returncode, ran.stderr) == (0, "")
    return ran.stdout


@pytest.mark.parametrize("url", BAD_URLS)
def test_no_url_breaks_help_and_version(tmp_path: Path, url: str) -> None:
    assert printed(tmp_path, "--version", url=url) == f"relet {__version__}\n"
    text = printed(tmp_path, "--help", url=url)
    assert OVERVIEW in text
    assert all(f"    {command.name}" in text for command in COMMANDS)


@pytest.fixture(scope="module")
def with_a_bad_url() -> Iterator[CommandLine]:
    with command_line("env", f"RELET_URL={BAD_URLS[0]}", "COLUMNS=120") as made:
        yield made


@pytest.mark.long
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_no_app_breaks_the_help_of_a_command(
    tmp_path: Path, command: Command, with_a_bad_url: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken.py").write_text("raise RuntimeError('not to be imported')")
    app = () if command.name in WITHOUT_APP else ("broken:app",)
    code, text = with_a_bad_url(tmp_path, command.name, *app, "--help")
    monkeypatch.setenv("COLUMNS", "120")
    assert (code, text) == (0, _help_of(command)), "the help, and nothing else"
    assert text.startswith(f"usage: relet {command.name}")
    assert [option for option in command.options if option not in text] == []
    assert [f"relet {command.name} {words}".rstrip() for words in EXAMPLES[command.name] if words not in text] == []


def _help_of(command: Command) -> str:
    (commands,) = (action for action in build()._actions if isinstance(action, argparse._SubParsersAction))
    help: str = commands.choices[command.name].format_help()
    return help


@pytest.mark.long
def test_every_command_has_examples_that_it_accepts() -> None:
    assert EXAMPLES.keys() == {command.name for command in COMMANDS}
    for name, lines in EXAMPLES.items():
        for line in lines:
            parse([name, *shlex.split(line)])


def test_the_examples_use_the_options_that_matter() -> None:
    """A command whose options do more than format its output shows at least one of them."""
    for command in COMMANDS:
        own = set(command.options) - {"--help", "--tenant", "--json", "--no-fair"}
        used = {word for line in EXAMPLES[command.name] for word in shlex.split(line)}
        assert not own or own & used or command.name in ("run", "top"), command.name


def test_the_commands_of_the_overview_are_accepted() -> None:
    lines = [line.strip() for line in OVERVIEW.splitlines() if line.startswith("  relet ")]
    assert len(lines) == 5
    for line in lines:
        parse(shlex.split(line.partition("   ")[0])[1:])
