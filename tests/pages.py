"""The pages of the documentation and the code in them. Conventions in the pages:

    <!-- needs: postgres -->    above a block: it is run on that store only; `sqlite` likewise
    expression  # -> text       the value reads so (`...` stands for anything)
    statement  # raises Error   or `# raises Error: text`

    ```python no-run            compiled only, because it needs a package or a server that the tests do not have

Either comment may also stand on separate lines below the statement. Blocks of SQL are for PostgreSQL. A block that
begins with `# shop.py` is also a file of that name, for child processes to import. Lines of shell that call `relet`
must be accepted by its command line.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
import shlex
import types
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]

BLOCK = re.compile(r"(?:^<!-- needs: (?P<needs>\w+) -->\n)?^```(?P<kind>python|sql)\n(?P<code>.*?)^```$", re.M | re.S)
SHELL = re.compile(r"^```sh\n(?P<code>.*?)^```$", re.M | re.S)
EXPECTATION = re.compile(r"# (?P<kind>->|raises) (?P<text>.*)$")


class Block(NamedTuple):
    kind: str
    needs: str | None
    code: str
    line: int  # of its first line in the page


def blocks(page: Path) -> list[Block]:
    text = page.read_text()
    return [
        Block(
            b["kind"],
            b["needs"] or ("postgres" if b["kind"] == "sql" else None),
            b["code"],
            _line(text, b.start("code")),
        )
        for b in BLOCK.finditer(text)
    ]


def commands(page: Path) -> list[list[str]]:
    """The arguments of every `relet ...` in the page."""
    lines = [line for block in SHELL.finditer(page.read_text()) for line in block["code"].splitlines()]
    words = [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("relet ")]
    return [list(takewhile(lambda word: word not in (">", "|"), one)) for one in words]


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


class Expectations(ast.NodeTransformer):
    """Turns the comments `# -> text` and `# raises Error` into checks."""

    def __init__(self, code: str) -> None:
        self._lines = [*code.splitlines(), ""]
        self.found = 0

    def visit(self, node: ast.AST) -> Any:
        node = super().generic_visit(node)
        if not isinstance(node, ast.stmt):
            return node
        kind, text = self._comment_on(node)
        if kind == "raises":
            name, _, message = text.partition(": ")
            checked: ast.stmt = ast.parse(f"with __raises__({name!r}, {message!r}): pass").body[0]
            checked.body = [node]  # type: ignore[attr-defined]
        elif kind == "->":
            assert isinstance(node, ast.Expr), f"only an expression has a value: {ast.unparse(node)}"
            checked = ast.parse(f"__reads__(0, {text!r})").body[0]
            checked.value.args[0] = node.value  # type: ignore[attr-defined]
        else:
            return node
        self.found += 1
        return ast.fix_missing_locations(ast.copy_location(checked, node))

    def _comment_on(self, node: ast.stmt) -> tuple[str | None, str]:
        """The comment at the end of the statement's line, or on the lines below it, indented as it is."""
        line = node.end_lineno or 0
        here, below = self._lines[line - 1], self._lines[line]
        beside = None if hasattr(node, "body") else EXPECTATION.search(here)
        match = beside or EXPECTATION.fullmatch(below, node.col_offset)
        if match is None or (match is not beside and below[: node.col_offset].strip()):
            return None, ""
        text, following = match["text"], line + (match is not beside)
        while self._lines[following].lstrip().startswith("#    "):
            text += " " + self._lines[following].lstrip(" #")
            following += 1
        return match["kind"], text


def same(expected: str, found: str) -> bool:
    pattern = ".*".join(re.escape(" ".join(part.split())) for part in re.split(r"\s*\.\.\.\s*", expected))
    return re.fullmatch(pattern.replace(r"\ .*", ".*"), " ".join(found.split())) is not None


def reads(value: object, expected: str) -> None:
    assert same(expected, str(value)) or same(expected, repr(value)), f"the page says {expected}, it is {value!r}"


@contextmanager
def raises(name: str, message: str) -> Iterator[None]:
    with pytest.raises(BaseException) as caught:  # noqa: PT011 - which one is checked below
        yield
    assert type(caught.value).__name__ == name, f"the page says {name}, it is {caught.value!r}"
    assert not message or same(message, str(caught.value)), f"the page says {message!r}, it is {str(caught.value)!r}"


def run_python(block: Block, page: Path, module: types.ModuleType, runner: asyncio.Runner) -> None:
    if block.code.startswith(f"# {module.__name__}.py\n"):
        Path(f"{module.__name__}.py").write_text(block.code)
    tree = Expectations(block.code).visit(ast.parse(block.code))
    ast.increment_lineno(tree, block.line - 1)
    code = compile(tree, str(page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    result = eval(code, module.__dict__)  # noqa: S307
    if inspect.iscoroutine(result):
        runner.run(result)


def new_module() -> types.ModuleType:
    """Where the code of a page lives."""
    module = types.ModuleType("shop")
    module.__dict__.update(__reads__=reads, __raises__=raises)
    return module
