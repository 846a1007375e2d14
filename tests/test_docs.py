"""The documentation is true: its code runs, its links lead somewhere, and nothing that users can say is left out.

Every page is run on every kind of store, block after block, as a module of its own. Conventions in the pages:

    <!-- needs: postgres -->    above a block: it is run on that store only (`sqlite` likewise; sql blocks are for PostgreSQL)
    expression  # -> text       the value reads so (`...` stands for anything)
    statement  # raises Error   or `# raises Error: text`

Either comment may also stand on lines of its own below the statement.
"""

from __future__ import annotations

import ast
import asyncio
import importlib.util
import inspect
import re
import sys
import types
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import psycopg
import pytest

import leasehold
from leasehold import App, AsyncClient, Attempt, Client, Job
from leasehold.options import Options, TaskOptions
from tests.conftest import PG_KINDS, SERVERS

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
STORES = ["sqlite", *PG_KINDS]

BLOCK = re.compile(r"(?:^<!-- needs: (?P<needs>\w+) -->\n)?^```(?P<kind>python|sql)\n(?P<code>.*?)^```$", re.M | re.S)
FENCED = re.compile(r"^```.*?^```$", re.M | re.S)
LINK = re.compile(r"(?<!!)\[[^\]]*\]\((?P<target>[^)\s]+)\)")
HEADING = re.compile(r"^#{1,6} (.+)$", re.M)
EXPECTATION = re.compile(r"# (?P<kind>->|raises) (?P<text>.*)$")
TEST_NAME = re.compile(r"`(?P<file>tests/[\w/]+\.py)::(?P<test>test_\w+)`")


def page_id(page: Path) -> str:
    return str(page.relative_to(ROOT))


each_page = pytest.mark.parametrize("page", PAGES, ids=page_id)


# Code


class Block(NamedTuple):
    kind: str
    needs: str | None
    code: str
    line: int  # of its first line in the page


def blocks(page: Path) -> list[Block]:
    text = page.read_text()
    return [
        Block(b["kind"], b["needs"] or ("postgres" if b["kind"] == "sql" else None), b["code"], _line(text, b.start("code")))
        for b in BLOCK.finditer(text)
    ]


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


class Expectations(ast.NodeTransformer):
    """Turns the comments `# -> text` and `# raises Error` into checks."""

    def __init__(self, code: str) -> None:
        self._lines = [*code.splitlines(), ""]
        self.found = 0

    def visit(self, node: ast.AST) -> Any:
        node = super().generic_visit(node)
        if not isinstance(node, ast.stmt) or hasattr(node, "body"):
            return node
        kind, text = self._comment_on(node.end_lineno or 0)
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

    def _comment_on(self, line: int) -> tuple[str | None, str]:
        """The comment at the end of a line, or on the lines below it."""
        here, below = self._lines[line - 1], self._lines[line].strip()
        match = EXPECTATION.search(here) or EXPECTATION.match(below)
        if match is None:
            return None, ""
        text, following = match["text"], line if match.string == here else line + 1
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
    tree = Expectations(block.code).visit(ast.parse(block.code))
    ast.increment_lineno(tree, block.line - 1)
    code = compile(tree, str(page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    result = eval(code, module.__dict__)  # noqa: S307
    if inspect.iscoroutine(result):
        runner.run(result)


@contextmanager
def store_of_page(name: str, request: pytest.FixtureRequest, folder: Path) -> Iterator[str]:
    if name == "sqlite":
        yield f"sqlite:///{folder}/leasehold.db"
    else:
        with request.config.stash[SERVERS].get(name).fresh_database() as url:
            yield url


def with_roles_of_its_own(code: str, roles: dict[str, str]) -> str:
    """Roles belong to the server, not to the database: two runs must not meet."""
    for role in re.findall(r"create role (\w+)", code):
        roles.setdefault(role, f"{role}_{uuid4().hex[:8]}")
    for role, own in roles.items():
        code = re.sub(rf"\b{role}\b", own, code)
    return code


@pytest.mark.parametrize("store", STORES)
@each_page
def test_the_code_of_a_page_runs_as_written(
    page: Path, store: str, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = "sqlite" if store == "sqlite" else "postgres"
    todo = [block for block in blocks(page) if block.needs in (None, kind)]
    if not todo:
        pytest.skip(f"no code for {kind} in it")
    module = types.ModuleType("shop")
    module.__dict__.update(__reads__=reads, __raises__=raises)
    monkeypatch.setitem(sys.modules, "shop", module)
    monkeypatch.chdir(tmp_path)
    roles: dict[str, str] = {}
    with ExitStack() as stack:
        url = stack.enter_context(store_of_page(store, request, tmp_path))
        monkeypatch.setenv("LEASEHOLD_URL", url)
        monkeypatch.setenv("DATABASE_URL", url)
        stack.callback(drop_roles, url, roles)
        runner = stack.enter_context(asyncio.Runner())
        stack.callback(close_apps, module)
        for block in todo:
            block = block._replace(code=with_roles_of_its_own(block.code, roles))
            if block.kind == "python":
                run_python(block, page, module, runner)
            else:
                with psycopg.connect(url, autocommit=True) as connection:
                    connection.execute(block.code.encode())


def close_apps(module: types.ModuleType) -> None:
    for value in vars(module).values():
        if isinstance(value, App):
            value.close()


def drop_roles(url: str, roles: dict[str, str]) -> None:
    if roles:
        with psycopg.connect(url, autocommit=True) as connection:
            for role in roles.values():
                connection.execute(f"drop owned by {role}".encode())
                connection.execute(f"drop role {role}".encode())


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("1 + 1  # -> 3", "the page says 3"),
        ("1 + 1\n# -> 3", "the page says 3"),
        ("int('x')  # raises TypeError", "the page says TypeError"),
        ("int('x')  # raises ValueError: quite another", "the page says 'quite another'"),
        ("int('1')  # raises ValueError", "DID NOT RAISE"),
    ],
)
def test_a_page_that_says_something_untrue_is_noticed(code: str, error: str) -> None:
    module = types.ModuleType("shop")
    module.__dict__.update(__reads__=reads, __raises__=raises)
    with asyncio.Runner() as runner, pytest.raises((AssertionError, pytest.fail.Exception), match=re.escape(error)):
        run_python(Block("python", None, code, 1), ROOT, module, runner)


@each_page
def test_every_expectation_stands_where_it_is_checked(page: Path) -> None:
    for block in blocks(page):
        if block.kind == "python":
            written = sum(EXPECTATION.search(line) is not None for line in block.code.splitlines())
            expectations = Expectations(block.code)
            expectations.visit(ast.parse(block.code))
            assert expectations.found == written, f"{page.name}, line {block.line}: a comment that is not checked"


# Links and completeness


@each_page
def test_links_lead_somewhere(page: Path) -> None:
    for link in LINK.finditer(FENCED.sub("", page.read_text())):
        path, _, anchor = link["target"].partition("#")
        if path.startswith(("http://", "https://")):
            continue
        there = (page.parent / path).resolve() if path else page
        assert there.exists(), f"{page.name}: {link['target']} leads nowhere"
        if anchor:
            assert anchor in anchors(there), f"{page.name}: {link['target']} names no heading of {there.name}"


def anchors(page: Path) -> set[str]:
    """As GitHub and MkDocs make them of headings."""
    headings = HEADING.findall(FENCED.sub("", page.read_text()))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def test_every_page_is_in_the_navigation() -> None:
    navigation = re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text())
    assert sorted(navigation) == sorted(str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md"))


def reference() -> str:
    return (DOCS / "reference.md").read_text()


def public(thing: type) -> list[str]:
    return [name for name in dir(thing) if not name.startswith("_")]


def shown_signature(name: str, function: Any) -> str:
    """`jobs(*, state=None, limit=50)`: without annotations, self and the slash."""
    parameters = [p.replace(annotation=p.empty) for p in list(inspect.signature(function).parameters.values())[1:]]
    text = str(inspect.Signature(parameters)).replace("/, ", "").replace(", /", "").replace("/", "")
    return f"{name}{text}"


def test_the_reference_names_everything_that_is_public() -> None:
    missing = [name for name in leasehold.__all__ if f"`{name}`" not in reference() and f"`{name}(" not in reference()]
    assert missing == []


@pytest.mark.parametrize("name", public(Client))
def test_the_reference_has_every_method_of_the_client_with_its_parameters(name: str) -> None:
    method = inspect.getattr_static(Client, name)
    shown = name if isinstance(method, property) else shown_signature(name, method)
    assert f"`{shown}`" in reference()
    assert hasattr(AsyncClient, name)


@pytest.mark.parametrize("thing", [App, Attempt, Job])
def test_the_reference_has_every_attribute_of_what_users_hold(thing: type) -> None:
    fields = getattr(thing, "__dataclass_fields__", {})
    assert [name for name in {*public(thing), *fields} if f"`{name}" not in reference()] == []


def section(heading: str) -> str:
    return reference().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


@pytest.mark.parametrize(("heading", "options"), [("Task options", TaskOptions), ("Options of one job", Options)])
def test_the_reference_has_every_option(heading: str, options: Any) -> None:
    rows = re.findall(r"^\| `(\w+)` \|", section(heading), re.M)
    assert sorted(rows) == sorted(options.__annotations__)


def test_the_guarantees_name_tests_that_exist() -> None:
    text = (DOCS / "guarantees.md").read_text()
    for match in TEST_NAME.finditer(text):
        file = ROOT / match["file"]
        assert file.exists() and f"def {match['test']}(" in file.read_text(), f"there is no {match.group()}"
    for part in re.split(r"^### ", text, flags=re.M)[1:]:
        assert TEST_NAME.search(part), f"no test is named for: {part.splitlines()[0]}"


def test_the_transition_table_and_diagram_are_those_of_the_code() -> None:
    spec = importlib.util.spec_from_file_location("make_concepts", DOCS / "make_concepts.py")
    assert spec is not None and spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert script.main(["--check"]) == 0
