"""Generates the completion scripts that `relet completion` prints. With --check, says which of them are out of date.

shtab reads commands, options and choices from the parser. It cannot know apps and verbs: the names of apps are those of
modules in the current directory, and a verb is the first of any number of words.
"""

from __future__ import annotations

import argparse
import sys

import shtab

from relet._cli.completion import FILES, FOLDER
from relet._cli.main import build

APPS = {
    "bash": """\
_relet_apps() {
  local file
  for file in *.py; do
    [[ -f $file ]] && grep -q 'App(' "$file" 2>/dev/null && compgen -W "${file%.py}" -- "$1"
  done
}
# $1=the word to complete, the others are verbs; bash splits shop:app into three words, and none of them is a verb
_relet_verbs() {
  local word verb
  [[ $1 == : || ${COMP_WORDS[COMP_CWORD-1]} == : ]] && return
  for word in "${COMP_WORDS[@]:2:COMP_CWORD-2}"; do
    for verb in "${@:2}"; do
      [[ $word == "$verb" ]] && return
    done
  done
  compgen -W "${*:2}" -- "$1"
}
""",
    "zsh": """\
_relet_apps() {
  local -a modules
  modules=(${(f)"$(grep -l 'App(' *.py(N) /dev/null 2>/dev/null)"})
  compadd -- ${modules%.py}
}
""",
    "fish": """\
function __relet_apps
  for file in *.py
    grep -q 'App(' $file; and string replace -r '\\.py$' '' $file
  end
end
""",
}


def main() -> int:
    """Write the scripts, or with --check compare them with the files. Returns the exit code."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a file is out of date")
    check = options.parse_args().check
    stale = [shell for shell in FILES if not _is_current(shell)]
    for shell in stale:
        if check:
            print(f"{FOLDER / FILES[shell]} is out of date: run ./dev completions")
        else:
            (FOLDER / FILES[shell]).write_text(script(shell), "utf-8")
    return 1 if check and stale else 0


def script(shell: str) -> str:
    """The completion script for a shell."""
    parser = build()
    verbs = [_add_hints(name, command) for name, command in _commands(parser).items()]
    preamble = APPS[shell] + ("".join(verbs) if shell == "bash" else "")
    lines = shtab.complete(parser, shell, preamble=preamble).splitlines()
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _commands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    (commands,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    return dict(commands.choices)


def _add_hints(name: str, command: argparse.ArgumentParser) -> str:
    """Tell shtab how to complete the app and the verbs of a command. Returns the bash function for its verbs."""
    verbs = " ".join(command.get_default("verbs") or ())
    function = f"_relet_verbs_{name}"
    hints = {
        "app": {"bash": "_relet_apps", "zsh": "_relet_apps", "fish": "(__relet_apps)"},
        "words": {"bash": function, "zsh": f"({verbs})", "fish": verbs},
    }
    for action in command._actions:
        if action.dest in hints and (action.dest == "app" or verbs):
            action.complete = hints[action.dest]  # type: ignore[attr-defined]
    return f'{function}() {{ _relet_verbs "$1" {verbs}; }}\n' if verbs else ""


def _is_current(shell: str) -> bool:
    file = FOLDER / FILES[shell]
    return file.exists() and file.read_text("utf-8") == script(shell)


if __name__ == "__main__":
    sys.exit(main())
