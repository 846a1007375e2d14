"""The documentation is true: its code runs, its links lead somewhere, and nothing that users can say is left out.

Every page is run on every kind of store, block after block, as a separate module. `tests/pages.py` knows how.
"""

from __future__ import annotations

import ast
import asyncio
import configparser
import inspect
import json
import re
import runpy
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, get_args
from uuid import uuid4

import psycopg
import pytest
import yaml

import relet
from relet import App, AsyncClient, Attempt, Client, Draft, Job, Worker, events
from relet._cli import worker
from relet._cli.main import parse
from relet._client.schedules import Schedules
from relet._tasks.options import Options, TaskOptions
from relet.errors import AbortReason
from relet.types import AttemptRecord, Chain, ScheduleInfo, Tick, Transaction
from tests.commands import all_commands
from tests.conftest import PG_KINDS, SERVERS
from tests.djangos import settings_in
from tests.pages import DOCS, EXPECTATION, PAGES, ROOT, Block, Expectations, blocks, commands, new_module, run_python

STORES = ["sqlite", *PG_KINDS]

FENCED = re.compile(r"^```.*?^```$", re.M | re.S)
LINK = re.compile(r"(?<!!)\[[^\]]*\]\((?P<target>[^)\s]+)\)")
HEADING = re.compile(r"^#{1,6} (.+)$", re.M)
TEST_NAME = re.compile(r"`(?P<file>tests/[\w/]+\.py)::(?P<test>test_\w+)`")


def page_id(page: Path) -> str:
    return str(page.relative_to(ROOT))


each_page = pytest.mark.parametrize("page", PAGES, ids=page_id)


# Code


@contextmanager
def store_of_page(name: str, request: pytest.FixtureRequest, folder: Path) -> Iterator[str]:
    if name == "sqlite":
        yield f"sqlite:///{folder}/relet.db"
    else:
        with request.config.stash[SERVERS].get(name).fresh_database() as url:
            yield url


def with_separate_roles(code: str, roles: dict[str, str]) -> str:
    """Roles belong to the server, not to the database: two runs must not meet."""
    for role in re.findall(r"create role (\w+)", code):
        roles.setdefault(role, f"{role}_{uuid4().hex[:8]}")
    for role, own in roles.items():
        code = re.sub(rf"\b{role}\b", own, code)
    return code


#: Pages about features that not every variant of the schema has.
NEEDS = {
    "completion.md": [pytest.mark.read_committed],
    "postgres.md": [pytest.mark.partitioned],
    "security.md": [pytest.mark.partitioned],
    "sql.md": [pytest.mark.partitioned],
}


def pages_and_stores() -> Iterator[Any]:
    """Each page on each store. The fast suite runs on PostgreSQL only pages with code for it alone."""
    for page in PAGES:
        on_postgres = any(block.needs == "postgres" for block in blocks(page))
        for store in STORES:
            name, marks = (store, []) if isinstance(store, str) else (store.values[0], list(store.marks))
            if name != "sqlite" and not on_postgres:
                marks.append(pytest.mark.long)
            marks += NEEDS.get(page.name, ())
            yield pytest.param(page, name, marks=marks, id=f"{page_id(page)}-{name}")


@pytest.mark.parametrize(("page", "store"), list(pages_and_stores()))
def test_the_code_of_a_page_runs_as_written(
    page: Path, store: str, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = "sqlite" if store == "sqlite" else "postgres"
    todo = [block for block in blocks(page) if block.needs in (None, kind)]
    if not todo:
        pytest.skip(f"no code for {kind} in it")
    module = new_module()
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    roles: dict[str, str] = {}
    with ExitStack() as stack:
        url = stack.enter_context(store_of_page(store, request, tmp_path))
        monkeypatch.setenv("RELET_URL", url)
        monkeypatch.setenv("DATABASE_URL", url)
        monkeypatch.setenv("PGOPTIONS", "")  # a page may set it
        stack.callback(drop_roles, url, roles)
        runner = stack.enter_context(asyncio.Runner())
        stack.enter_context(closing_apps(monkeypatch))
        stack.enter_context(settings_in(module.__name__))
        for block in todo:
            block = block._replace(code=with_separate_roles(block.code, roles))
            if block.kind == "python":
                run_python(block, page, module, runner)
            else:
                with psycopg.connect(url, autocommit=True) as connection:
                    connection.execute(block.code.encode())


@contextmanager
def closing_apps(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Apps are made in the pages, and some names are used twice."""
    made: list[App] = []
    init = App.__init__

    def noted(self: App, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        made.append(self)

    monkeypatch.setattr(App, "__init__", noted)
    try:
        yield
    finally:
        for app in made:
            app.close()


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
    with asyncio.Runner() as runner, pytest.raises((AssertionError, pytest.fail.Exception), match=re.escape(error)):
        run_python(Block("python", None, code, 1), ROOT, new_module(), runner)


@each_page
def test_every_expectation_stands_where_it_is_checked(page: Path) -> None:
    for block in blocks(page):
        if block.kind == "python":
            written = sum(EXPECTATION.search(line) is not None for line in block.code.splitlines())
            expectations = Expectations(block.code)
            expectations.visit(ast.parse(block.code))
            assert expectations.found == written, f"{page.name}, line {block.line}: a comment that is not checked"


def test_the_start_of_the_readme_is_a_program(tmp_path: Path) -> None:
    program = next(block.code for block in blocks(ROOT / "README.md") if block.code.startswith("# shop.py\n"))
    (tmp_path / "shop.py").write_text(program)
    ran = subprocess.run([sys.executable, "shop.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (ran.stdout, ran.returncode) == ("acct-7 paid 500\n", 0), ran.stderr


def test_the_first_job_of_the_quick_start_runs_by_its_commands(tmp_path: Path) -> None:
    page = DOCS / "quickstart.md"
    program = next(block.code for block in blocks(page) if block.code.startswith("# shop.py\n"))
    (tmp_path / "shop.py").write_text(program)

    def run(arguments: list[str]) -> str:
        command = [sys.executable, "-m", "relet", *arguments]
        return subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True, timeout=60).stdout

    enqueue, worker, listing, show = commands(page)[:4]
    job = run(enqueue).strip()
    run(worker)
    assert re.search(rf"^{job} .* succeeded ", run(listing), re.M)
    assert 'result   "Hello, Ada"' in run([job if word == "ID" else word for word in show])


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


def test_the_glossary_names_modules_that_exist() -> None:
    modules = set(re.findall(r"`((?:_\w+|app\.py)(?:/[\w.]*)*)`", (DOCS / "glossary.md").read_text()))
    assert len(modules) > 50
    assert [module for module in sorted(modules) if not (ROOT / "src" / "relet" / module).exists()] == []


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
    missing = [name for name in relet.__all__ if f"`{name}`" not in reference() and f"`{name}(" not in reference()]
    assert missing == []


@pytest.mark.parametrize("name", public(Client))
def test_the_reference_has_every_method_of_the_client_with_its_parameters(name: str) -> None:
    method = inspect.getattr_static(Client, name)
    shown = name if isinstance(method, property) else shown_signature(name, method)
    assert f"`{shown}`" in reference()
    assert hasattr(AsyncClient, name)


@pytest.mark.parametrize(
    "thing", [App, Attempt, AttemptRecord, Chain, Draft, Job, ScheduleInfo, Tick, Transaction, Worker]
)
def test_the_reference_has_every_attribute_of_public_objects(thing: type) -> None:
    own = [name for name in public(thing) if not hasattr(tuple, name)]
    assert [name for name in own if not re.search(rf"`{name}\b", reference())] == []


@pytest.mark.parametrize("name", public(Schedules))
def test_the_reference_has_every_method_of_schedules_with_its_parameters(name: str) -> None:
    assert f"`{shown_signature(name, getattr(Schedules, name))}`" in section("Schedules")


def section(heading: str) -> str:
    return reference().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


@pytest.mark.parametrize(("heading", "options"), [("Task options", TaskOptions), ("Options of one job", Options)])
def test_the_reference_has_every_option(heading: str, options: Any) -> None:
    rows = re.findall(r"^\| `(\w+)` \|", section(heading), re.M)
    assert sorted(rows) == sorted(options.__annotations__)


def test_the_reference_has_every_option_of_a_worker() -> None:
    options = list(inspect.signature(Worker).parameters.values())[1:]
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|", section("Worker"), re.M))
    assert sorted(rows) == sorted(option.name for option in options)
    told = {name: default.strip("`") for name, default in rows.items() if default not in ("every queue", "none")}
    for option in options:
        if isinstance(option.default, int | float):
            assert float(told[option.name].split()[0]) * (86400 if "day" in told[option.name] else 1) == option.default
    assert f"`{shown_signature('run', Worker.run)}`" in section("Worker")


def all_events() -> list[str]:
    return [name for name, kind in vars(events).items() if isinstance(kind, type) and issubclass(kind, events.Event)]


@pytest.mark.parametrize("name", all_events())
def test_every_event_is_in_the_reference_and_its_guide(name: str) -> None:
    fields = getattr(events, name).__struct_fields__
    for text in (section("Events"), (DOCS / "guides" / "events.md").read_text()):
        assert [word for word in [name, *fields] if not re.search(rf"`{word}`|events\.{word}\b", text)] == []


def test_every_reason_to_abort_is_told_of() -> None:
    for text in (section("For handlers"), (DOCS / "guides" / "handlers.md").read_text()):
        assert [reason for reason in get_args(AbortReason) if f"`{reason}`" not in text] == []


COMMANDS = {command.name: command for command in all_commands()}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_reference_has_every_command_with_its_verbs_and_options(name: str) -> None:
    text = re.search(rf"^`relet {name}\b.*?(?=^`relet|\Z)", section("Command line"), re.M | re.S)
    assert text is not None
    options = [option for option in COMMANDS[name].options if option not in ("--help", "--json", "--tenant")]
    words = [*options, *COMMANDS[name].verbs]
    assert [word for word in words if not re.search(rf"`[^`\n]*{word}\b", text.group())] == []


def test_the_reference_has_every_exit_code() -> None:
    codes = re.findall(r"(?:codes: |, )(\d+(?: \+ n)?) ", " ".join(worker.EXIT_CODES.split()))
    for text in (section("Command line"), (DOCS / "guides" / "workers.md").read_text()):
        assert re.findall(r"^\| (\d+(?: \+ n)?) \|", text, re.M) == codes


@pytest.mark.long
@each_page
def test_every_command_of_a_page_is_one(page: Path) -> None:
    for arguments in [*commands(page), *commands_in_text(page)]:
        if arguments != ["--version"]:
            parse(arguments)


def commands_in_text(page: Path) -> list[list[str]]:
    """The arguments of every complete `relet ... shop:app ...` between backticks."""
    text = FENCED.sub("", page.read_text())
    return [shlex.split(found) for found in re.findall(r"`relet ([^`]*:app\b[^`]*)`", text) if "..." not in found]


# Blocks that are not run


def accept_shell(code: str) -> None:
    ran = subprocess.run(["sh", "-n"], input=code, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr


def accept_units(code: str) -> None:
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(code)
    assert parser.sections()


#: `text` and `console` have no syntax; tests/test_docs_deployment.py uses the files of web servers and containers.
SYNTAX: dict[str, Callable[[str], object]] = {
    "sh": accept_shell,
    "json": json.loads,
    "toml": tomllib.loads,
    "yaml": lambda code: list(yaml.safe_load_all(code)),
    "ini": accept_units,
}
USED_ELSEWHERE = {"python", "sql", "text", "console", "mermaid", "nginx", "caddyfile", "dockerfile"}


@each_page
def test_every_block_is_well_formed(page: Path) -> None:
    for kind, code in re.findall(r"^```(\w*).*?\n(.*?)^```$", page.read_text(), re.M | re.S):
        assert kind in SYNTAX or kind in USED_ELSEWHERE, f"{page.name}: a block of an unknown kind: {kind!r}"
        SYNTAX.get(kind, str)(code)


@each_page
def test_python_that_is_not_run_compiles(page: Path) -> None:
    for code in re.findall(r"^```python no-run\n(.*?)^```$", page.read_text(), re.M | re.S):
        compile(code, str(page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


def test_the_guarantees_name_tests_that_exist() -> None:
    text = (DOCS / "guarantees.md").read_text()
    for match in TEST_NAME.finditer(text):
        assert f"def {match['test']}(" in (ROOT / match["file"]).read_text(), f"there is no {match.group()}"
    for part in re.split(r"^### ", text, flags=re.M)[1:]:
        assert TEST_NAME.search(part), f"no test is named for: {part.splitlines()[0]}"


def test_the_transition_table_and_diagram_are_those_of_the_code() -> None:
    script = runpy.run_path(str(DOCS / "make_concepts.py"))
    assert script["main"](["--check"]) == 0
