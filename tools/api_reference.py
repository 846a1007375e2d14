"""Generates docs/api.md from the signatures and docstrings of public objects. With --check, compares it with the file.

The example of a method is the first statement in the guides that calls it. The tests run the guides, so every example
works as shown.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import relet
from relet import errors, testing
from relet._client.schedules import Schedules
from relet._tasks.task import Task

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "api.md"
#: A class, and the names under which the guides use its objects.
CLASSES: dict[type, str] = {
    relet.App: r"\bapp",
    Task: r"\b\w+(?:\.using\(.*\))?",
    relet.Client: r"\bclient",
    Schedules: r"\bschedules",
    relet.Attempt: r"\battempt",
    relet.Worker: r"\bworker|Worker\(.*\)",
    testing.Harness: r"\brelet|harness",
}
LONGEST_EXAMPLE = 8  # lines
HEAD = """\
# Signatures

This page is generated from signatures and docstrings. The [reference](reference.md) explains options and results in
tables. `AsyncClient` has the methods of `Client` to be awaited. Each example is a statement of the guide that is named
below it.
"""
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.M | re.S)
HEADING = re.compile(r"^#+ (.+)$", re.M)


@cache
def guide_statements() -> list[tuple[str, str, Path]]:
    """The statements of every guide: their text without comments about values, their heading and their page."""
    found = []
    for page in [DOCS / "quickstart.md", *sorted((DOCS / "guides").glob("*.md"))]:
        text = page.read_text()
        for block in BLOCK.finditer(text):
            headings = HEADING.findall(re.sub(r"^```.*?^```$", "", text[: block.start()], flags=re.M | re.S))
            found += [(code, headings[-1], page) for code in _statements(block[1])]
    return found


def _statements(code: str) -> Iterator[str]:
    """Top-level statements, and those in functions and blocks that are short enough to stand alone."""
    module = compile(code, "guide", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    assert isinstance(module, ast.Module)  # noqa: S101
    lines = code.splitlines()
    for node in module.body:
        decorators: list[ast.expr] = getattr(node, "decorator_list", [])
        first = min([node.lineno, *(each.lineno for each in decorators)])
        text = lines[first - 1 : node.end_lineno]
        after = lines[node.end_lineno :]
        if after and after[0].startswith("# "):  # the value, on a line by itself
            text.append(after[0])
        if len(text) <= LONGEST_EXAMPLE:
            yield "\n".join(text)


def example_of(owner: str, name: str, *, is_call: bool) -> str:
    """The shortest statement that uses a method, with the page that it is from; or nothing."""
    use = re.compile(rf"(?:{owner})\.{name}" + (r"(?:\(|$)" if is_call else r"\b"), re.M)
    uses = [each for each in guide_statements() if use.search(each[0])]
    if not uses:
        return ""
    code, heading, page = min(uses, key=lambda each: (each[0].count("\n"), "# ->" not in each[0]))
    anchor = re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")
    return f"\n```python no-run\n{code}\n```\n\nFrom [{heading}]({page.relative_to(DOCS)}#{anchor}).\n"


def signature_of(name: str, function: Callable[..., Any]) -> str:
    """As in the source, one parameter on a line if it is long."""
    signature = inspect.signature(function)
    own = [each for each in signature.parameters.values() if each.name != "self"]
    text = f"{name}{signature.replace(parameters=own)}"
    text = re.sub(r"(?:\w+\.)+(\w+)", r"\1", text).replace("'", "")
    if len(text) <= 100:
        return text
    opened, _, rest = text.partition("(")
    inside, _, result = rest.rpartition(")")
    return f"{opened}(\n" + "".join(f"    {each},\n" for each in _parameters(inside)) + f"){result}"


def _parameters(text: str) -> list[str]:
    """The parameters between commas that are not in brackets."""
    found, depth = [""], 0
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            found.append("")
        else:
            found[-1] += letter
    return [each.strip() for each in found]


def entry(owner: str, kind: type, name: str) -> str:
    """A method or property, with its signature, docstring and example."""
    member = inspect.getattr_static(kind, name)
    is_call = not isinstance(member, property) and callable(getattr(kind, name))
    doc = inspect.getdoc(getattr(kind, name)) or ""
    shown = f"\n```text\n{signature_of(name, getattr(kind, name))}\n```\n" if is_call else ""
    return f"\n### `{kind.__name__}.{name}`\n{shown}\n{_as_markdown(doc)}\n{example_of(owner, name, is_call=is_call)}"


def _as_markdown(doc: str) -> str:
    return re.sub(r"(?m)^    (.*)$", r"- \1", doc.replace("<", "&lt;"))


def members(kind: type) -> list[str]:
    """Public names with a docstring; the fields of data types are in the reference."""
    return [name for name in dir(kind) if not name.startswith("_") and inspect.getdoc(getattr(kind, name))]


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    for kind, owner in CLASSES.items():
        parts.append(f"\n## {kind.__name__}\n\n{_as_markdown(inspect.getdoc(kind) or '')}\n")
        parts += [entry(owner, kind, name) for name in members(kind)]
    parts.append("\n## Errors\n\nAll are in `relet.errors`.\n\n| error | when |\n|---|---|\n")
    parts += [f"| `{each.__name__}` | {_first_line(each)} |\n" for each in _errors()]
    return "".join(parts)


def _errors() -> list[type]:
    kinds = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, BaseException)]
    return sorted((each for each in kinds if each.__doc__), key=lambda each: each.__name__)


def _first_line(kind: type) -> str:
    return (inspect.getdoc(kind) or "").partition("\n\n")[0].replace("\n", " ").replace("|", "\\|")


def main() -> int:
    """Write the page, or with --check compare it. Returns the exit code."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--check", action="store_true", help="write nothing; exit with 1 if the page is out of date")
    text = page()
    if not options.parse_args().check:
        PAGE.write_text(text)
    elif not PAGE.exists() or PAGE.read_text() != text:
        print(f"{PAGE.name} is out of date: run ./dev api")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
