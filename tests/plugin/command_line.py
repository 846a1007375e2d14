"""The command line, run in forks of one process that has everything imported."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

TEXT_LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} (DEBUG|INFO|WARNING|ERROR) +[a-z.]+: \S.*")


#: Runs command lines in forks of itself: a Python that has everything imported already, which is much quicker. A fork
#: ends as a program does, but does not take the interpreter apart, which takes longer than most commands.
FORKS = """
import atexit, gc, json, os, shutil, sys, threading, traceback
import psycopg
from relet._cli import main

def run(folder, arguments):
    os.chdir(folder)
    printed = os.open("said", os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
    piped = os.open("piped" if os.path.exists("piped") else os.devnull, os.O_RDONLY)
    os.dup2(piped, 0), os.dup2(printed, 1), os.dup2(printed, 2)
    sys.stdin = open(0)
    sys.argv = ["relet", *arguments]
    try:
        main(arguments)
    except SystemExit as end:
        return end.code or 0
    except BaseException:
        traceback.print_exc()
        return 1

gc.freeze()
for line in sys.stdin:
    if os.fork() == 0:
        folder, *arguments = json.loads(line)
        code = run(folder, arguments)
        threading._shutdown()
        atexit._run_exitfuncs()
        sys.stdout.flush(), sys.stderr.flush()
        os._exit(code)
    print(os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
"""


class CommandLine:
    """Runs commands, and returns their exit codes and output."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def __call__(self, folder: Path, *arguments: str) -> tuple[int, str]:
        """The exit code, and the output."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps([str(folder), *arguments]), file=self._process.stdin, flush=True)
        return int(self._process.stdout.readline()), (folder / "said").read_text()

    def refusal(self, folder: Path, *arguments: str, codes: tuple[int, ...] = (1, 2)) -> str:
        """The error message of a command that fails; log lines before it are ignored."""
        code, printed = self(folder, *arguments)
        lines = [line for line in printed.splitlines() if not TEXT_LINE.fullmatch(line)]
        assert code in codes, printed
        assert lines[0].startswith("relet: "), printed
        assert all(line.startswith("\t") for line in lines[1:]), printed  # the message of the database may continue
        return lines[0]


@contextmanager
def command_line(*before: str) -> Iterator[CommandLine]:
    """In a process that is started by this command."""
    environment = {name: value for name, value in os.environ.items() if name != "RELET_URL"}
    command = [*before, sys.executable, "-c", FORKS]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
    with process:
        yield CommandLine(process)


@pytest.fixture(scope="module")
def typed() -> Iterator[CommandLine]:
    """Runs a command line in a folder, and returns its exit code and output."""
    with command_line() as made:
        yield made
