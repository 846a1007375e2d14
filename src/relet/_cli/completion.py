"""`relet completion bash`: print a script that completes commands, verbs, options and their values in a shell.

The scripts are files in `completions/`, which `./dev completions` generates from the argument parser. They are static:
completing does not start Python.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "completions"
FILES = {"bash": "relet.bash", "zsh": "_relet", "fish": "relet.fish"}  # the names under which shells look for them
INSTALL = """\
how to install it:
  bash   relet completion bash > ~/.local/share/bash-completion/completions/relet
  zsh    relet completion zsh > a file _relet in a directory of $fpath
  fish   relet completion fish > ~/.config/fish/completions/relet.fish"""


def add_to(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "completion",
        help="print a completion script for your shell",
        description="Print a script that completes commands, verbs and options in your shell.",
        epilog=INSTALL,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("shell", choices=tuple(FILES), help="your shell")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    print((FOLDER / FILES[options.shell]).read_text("utf-8"), end="")
    return 0
