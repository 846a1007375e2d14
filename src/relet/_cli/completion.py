"""`relet completion bash`: print a script that completes commands, verbs, options and their values in a shell.

The scripts are generated from the argument parser. They are static: completing does not start Python.
"""

from __future__ import annotations

import argparse
from typing import Any, NamedTuple

SHELLS = ("bash", "zsh", "fish")
INSTALL = """\
how to install it:
  bash   relet completion bash > ~/.local/share/bash-completion/completions/relet
  zsh    relet completion zsh > a file _relet in a directory of $fpath
  fish   relet completion fish > ~/.config/fish/completions/relet.fish"""


class Command(NamedTuple):
    """A command with its verbs and options."""

    name: str
    help: str
    verbs: tuple[str, ...]
    flags: tuple[Flag, ...]


class Flag(NamedTuple):
    """One long name of an option."""

    name: str
    help: str
    takes_value: bool
    choices: tuple[str, ...]


def add_to(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "completion",
        help="print a completion script for your shell",
        description="Print a script that completes commands, verbs and options in your shell.",
        epilog=INSTALL,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("shell", choices=SHELLS, help="your shell")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from .main import build

    print({"bash": bash, "zsh": zsh, "fish": fish}[options.shell](commands_of(build())), end="")
    return 0


def commands_of(parser: argparse.ArgumentParser) -> list[Command]:
    """Read all commands from the parser."""
    (sub,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    helps = {action.dest: action.help or "" for action in sub._choices_actions}
    return [
        Command(name, helps.get(name, ""), _verbs(command), tuple(_flags(command)))
        for name, command in sub.choices.items()
    ]


def _verbs(parser: argparse.ArgumentParser) -> tuple[str, ...]:
    """The verbs of a command, or the choices of its first positional argument that has any."""
    choices = [tuple(action.choices) for action in parser._actions if not action.option_strings and action.choices]
    return parser.get_default("verbs") or (choices[0] if choices else ())


def _flags(parser: argparse.ArgumentParser) -> list[Flag]:
    return [
        Flag(name, (action.help or "").replace("%%", "%"), action.nargs != 0, tuple(map(str, action.choices or ())))
        for action in parser._actions
        if action.help != argparse.SUPPRESS
        for name in action.option_strings
        if name.startswith("--")
    ]


def _takes_app(command: Command) -> bool:
    return command.name not in ("completion", "demo")


def bash(commands: list[Command]) -> str:
    """The script for bash. It splits the line itself, because bash splits `shop:app` into three words."""
    arms = []
    for command in commands:
        valued = [flag for flag in command.flags if flag.takes_value]
        values = "".join(f"                {flag.name}) values='{' '.join(flag.choices)}' ;;\n"
                         for flag in valued if flag.choices)  # fmt: skip
        arms.append(
            f"        {command.name})\n"
            f"            flags='{' '.join(flag.name for flag in command.flags)}'\n"
            f"            valued=' {' '.join(flag.name for flag in valued)} '\n"
            f"            verbs='{' '.join(command.verbs)}'\n"
            f"            apps={1 if _takes_app(command) else 0}\n"
            f"            case $previous in\n{values}                *) ;;\n            esac ;;\n"
        )
    names = " ".join(command.name for command in commands)
    return BASH.replace("@COMMANDS@", names).replace("@ARMS@", "".join(arms))


BASH = """\
# bash completion of relet: source it, or put it in a directory of bash-completion
_relet() {
    local line=${COMP_LINE:0:COMP_POINT} word current previous flags='' valued='' verbs='' values='' apps=0
    local -a words
    read -ra words <<< "$line"
    [[ $line == *[[:space:]] ]] && words+=('')
    current=${words[-1]} previous=${words[-2]}
    COMPREPLY=()
    if (( ${#words[@]} <= 2 )); then
        COMPREPLY=($(compgen -W '@COMMANDS@ --help --version' -- "$current"))
        return
    fi
    case ${words[1]} in
@ARMS@        *) return ;;
    esac
    if [[ $valued == *" $previous "* ]]; then
        COMPREPLY=($(compgen -W "$values" -- "$current"))
        return
    fi
    if [[ $current == -* ]]; then
        COMPREPLY=($(compgen -W "$flags" -- "$current"))
        return
    fi
    local i position=0
    for (( i = 2; i < ${#words[@]} - 1; i++ )); do
        if [[ $valued == *" ${words[i]} "* ]]; then
            (( i++ ))
        elif [[ ${words[i]} != -* ]]; then
            (( position++ ))
        fi
    done
    if (( position == 0 && apps )); then
        local -a modules=()
        for word in *.py; do
            [[ -f $word ]] && grep -q 'App(' "$word" 2>/dev/null && modules+=("${word%.py}")
        done
        COMPREPLY=($(compgen -W "${modules[*]}" -- "$current"))
    elif (( position == apps )); then
        COMPREPLY=($(compgen -W "$verbs" -- "$current"))
    fi
}
complete -F _relet relet
"""


def zsh(commands: list[Command]) -> str:
    """The script for zsh, which uses `_arguments`."""
    names = "\n".join(f"        '{command.name}:{_quoted(command.help)}'" for command in commands)
    arms = []
    for command in commands:
        lines = [f"                '{flag.name}[{_bracketed(flag.help)}]{_zsh_value(flag)}'" for flag in command.flags]
        app = ["                '1:app:_relet_apps'"] if _takes_app(command) else []
        verbs = [f"                '{len(app) + 1}:verb:({' '.join(command.verbs)})'"] if command.verbs else []
        body = " \\\n".join([*lines, *app, *verbs])
        arms.append(f"        {command.name})\n            _arguments \\\n{body} ;;\n")
    return ZSH.replace("@COMMANDS@", names).replace("@ARMS@", "".join(arms))


ZSH = """\
#compdef relet
# zsh completion of relet: a file _relet in a directory of $fpath

_relet_apps() {
    local -a modules
    modules=(${(f)"$(grep -l 'App(' *.py(N) /dev/null 2>/dev/null)"})
    compadd -- ${modules%.py}
}

_relet() {
    local -a commands
    commands=(
@COMMANDS@
    )
    if (( CURRENT == 2 )); then
        _describe command commands
        return
    fi
    local command=$words[2]
    shift words
    (( CURRENT-- ))
    case $command in
@ARMS@    esac
}

if [[ $funcstack[1] == _relet ]]; then
    _relet "$@"
else
    compdef _relet relet
fi
"""


def fish(commands: list[Command]) -> str:
    """The script for fish: one line for each command, verb list and option."""
    lines = [FISH]
    for command in commands:
        lines.append(f"complete -c relet -n '__relet_words 1' -a {command.name} -d '{_quoted(command.help)}'")
        prefix = f"complete -c relet -n '__relet_command_is {command.name}'"
        if _takes_app(command):
            lines.append(f"{prefix[:-1]}; and __relet_words 2' -a '(__relet_apps)'")
        if command.verbs:
            position = 3 if _takes_app(command) else 2
            lines.append(f"{prefix[:-1]}; and __relet_words {position}' -a '{' '.join(command.verbs)}'")
        for flag in command.flags:
            value = f" -x -a '{' '.join(flag.choices)}'" if flag.takes_value else ""
            lines.append(f"{prefix} -l {flag.name[2:]}{value} -d '{_quoted(flag.help)}'")
    return "\n".join(lines) + "\n"


FISH = """\
# fish completion of relet: ~/.config/fish/completions/relet.fish
function __relet_words
    test (count (commandline -opc)) -eq $argv[1]
end
function __relet_command_is
    set -l words (commandline -opc)
    test "$words[2]" = $argv[1]
end
function __relet_apps
    for file in *.py
        grep -q 'App(' $file; and string replace -r '\\\\.py$' '' $file
    end
end
complete -c relet -f"""


def _quoted(text: str) -> str:
    """Make text safe inside single quotes, and without the colon that separates fields in zsh."""
    return text.replace("'", "").replace(":", " -")


def _bracketed(text: str) -> str:
    return _quoted(text).replace("[", "(").replace("]", ")")


def _zsh_value(flag: Flag) -> str:
    if not flag.takes_value:
        return ""
    return f":value:({' '.join(flag.choices)})" if flag.choices else ":value:"
