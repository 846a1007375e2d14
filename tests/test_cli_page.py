"""The commands of the guide to the command line, typed one after another as they stand there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.commands import Command, all_commands
from tests.pages import DOCS, SHELL, blocks
from tests.plugin.command_line import CommandLine

PAGE = DOCS / "guides" / "cli.md"
LINE = re.compile(
    r"(?:printf '(?P<form>[^']*)' (?P<values>[^|]*)\| )?"
    r"(?:(?P<name>\w+)=\$\()?relet (?P<words>.*?)\)?(?:\s+# .*)?"
)
NOT_RUN = {"top": "--once", "completion": "", "demo": "", "web": "", "gateway": ""}  # but run with this option
MEASURES = ("bench", "torture")


def lines() -> list[re.Match[str]]:
    found = [line for block in SHELL.finditer(PAGE.read_text()) for line in block["code"].splitlines()]
    matches = [LINE.fullmatch(line) for line in found]
    assert all(matches), [line for line, match in zip(found, matches, strict=True) if match is None]
    return [match for match in matches if match is not None]


def test_all_commands_of_the_page_print_the_expected_output(typed: CommandLine, tmp_path: Path) -> None:
    _write_shop(tmp_path)
    known: dict[str, str] = {}
    for line in lines():
        words = [known.get(word.removeprefix("$"), word) for word in shlex.split(line["words"])]
        if NOT_RUN.get(words[0], words[-1]) != words[-1] or words[0] in MEASURES:
            continue
        if "--gateway" in words:  # tests/gateway run such workers
            continue
        values = (line["values"] or "").split()
        (tmp_path / "piped").write_text("".join((line["form"] or "").replace("\\n", "\n") % value for value in values))
        code, printed = typed(tmp_path, *words)
        assert code == 0 or words[0] == "doctor", f"relet {' '.join(words)}\n{printed}"
        if line["name"]:
            known[line["name"]] = printed.strip()


@pytest.mark.long
@pytest.mark.parametrize("name", MEASURES)
def test_the_commands_of_the_page_that_measure_do_so(typed: CommandLine, tmp_path: Path, name: str) -> None:
    _write_shop(tmp_path)
    (words,) = (line["words"] for line in lines() if line["words"].startswith(name))
    code, printed = typed(tmp_path, *shlex.split(words))
    assert code == 0, printed


def _write_shop(folder: Path) -> None:
    (program,) = (block.code for block in blocks(PAGE) if block.code.startswith("# shop.py\n"))
    (folder / "shop.py").write_text(program)


@pytest.mark.parametrize("command", all_commands(), ids=lambda command: command.name)
def test_the_page_has_an_example_of_every_command_and_verb(command: Command) -> None:
    text = PAGE.read_text()
    assert f"relet {command.name}" in text
    assert [verb for verb in command.verbs if not re.search(rf"\b{verb}\b", text)] == []
