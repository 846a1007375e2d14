"""Output and exit codes of the command line."""

from __future__ import annotations

import json
import re
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.plugin.command_line import TEXT_LINE, CommandLine
from tests.servers import Server
from tests.store.proxy import refusing
from tests.worker.programs import APP, Shop, a_shop


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    """A shop of worker programs on SQLite."""
    with a_shop(tmp_path, f"sqlite:///{tmp_path / 'relet.db'}") as made:
        yield made


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with an app that the tests do not change."""
    made = tmp_path_factory.mktemp("shop")
    write_app(made, "sqlite:///relet.db")
    return made


def write_app(folder: Path, url: str, schema: str = "relet") -> None:
    (folder / "shop.py").write_text(APP.format(url=url, schema=schema))


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "printed"),
    [
        ("nosuch:app", "Cannot find module 'nosuch'. Python searches the working directory first, which is /"),
        ("shop:ap", "Module shop has no ap. Did you mean shop:app?"),
        ("shop:HERE", "shop:HERE is of type PosixPath, not a relet App. Available: shop:app."),
        ("shop.py", "Name the app as module:attribute, such as shop:app, not 'shop.py'."),
        ("./shop.py:app", "such as shop:app, not './shop.py:app'."),
        ("", "such as shop:app, not ''."),
    ],
)
def test_an_app_that_is_not_there_is_explained(typed: CommandLine, folder: Path, name: str, printed: str) -> None:
    assert printed in typed.refusal(folder, "worker", name)


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("import nosuchlibrary", r"Importing broken failed: ModuleNotFoundError: .*nosuchlibrary.* \(.*broken.py:1\)"),
        ("\n1 / 0", r"Importing broken failed: ZeroDivisionError: division by zero \(.*broken.py:2\)"),
        ("def f(:", r"Importing broken failed: SyntaxError: .*broken.py"),
        ("import sys\nsys.exit(7)", r"Importing broken failed: SystemExit: 7 \(.*broken.py:2\)"),
        (
            "from relet import App\napp = App()\n@app.task(name='a')\ndef one() -> None: ...\n"
            "@app.task(name='a')\ndef two() -> None: ...\n",
            r"two tasks are named a: broken.one .*broken.py:3.* and broken.two .*broken.py:5.*another name=.*:5\)",
        ),
        ("from relet import App\napp = App()", "this app has no tasks"),
        ("from relet import App\napp = App('mysql://x')", "starts with sqlite:// or postgresql://"),
    ],
)
def test_a_module_that_is_wrong_is_explained(typed: CommandLine, tmp_path: Path, text: str, printed: str) -> None:
    (tmp_path / "broken.py").write_text(text)
    assert re.search(printed, typed.refusal(tmp_path, "worker", "broken:app"))


def test_a_module_that_a_package_lacks_is_named(typed: CommandLine, folder: Path) -> None:
    (folder / "parts").mkdir()
    assert "Cannot find module 'parts.jobs'." in typed.refusal(folder, "worker", "parts.jobs:app")


@pytest.mark.parametrize(
    ("options", "printed"),
    [
        (("-q", "billing=many"), "--queue billing=many: slots must be a number, such as --queue billing=4"),
        (("-q", "billing=0"), "the slots of queue billing must be a whole number from 1 to 10000, not 0"),
        (("-q", "two words"), "queue must be 1 to 128 letters"),
        (("--tenant", "acme"), "--tenant acme needs a number of slots, such as --tenant acme=4"),
        (("--tenant", "Acme!=2"), "named by 1 to 48 of a-z 0-9 _"),
        (("-c", "0"), "concurrency must be a whole number from 1 to 10000, not 0"),
        (("--processes", "0"), "--processes must be from 1 to 1000, not 0"),
        (("--lease", "0"), "lease must be seconds from 0.1 to 86400, not 0"),
        (("--shutdown-timeout", "nan"), "shutdown_timeout must be seconds"),
        (("--max-jobs", "0"), "max_jobs must be a whole number from 1"),
    ],
)
def test_an_argument_that_makes_no_sense_is_explained(
    typed: CommandLine, folder: Path, options: tuple[str, ...], printed: str
) -> None:
    assert printed in typed.refusal(folder, "worker", "shop:app", *options)


@pytest.mark.parametrize("options", [("-q", "billing=many"), ("--tenant", "acme"), ("-c", "0"), ("--processes", "0")])
def test_wrong_arguments_exit_with_the_code_that_help_says(
    typed: CommandLine, folder: Path, options: tuple[str, ...]
) -> None:
    assert typed(folder, "worker", "shop:app", *options)[0] == 2


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        (("worker", "shop:app", "-c", "ten"), "argument -c/--concurrency: invalid int value: 'ten'"),
        (("worker",), "the following arguments are required: APP"),
        ((), "the following arguments are required: COMMAND"),
        (("werker",), "invalid choice: 'werker'"),
    ],
)
def test_arguments_that_cannot_be_parsed_show_the_usage(
    typed: CommandLine, folder: Path, arguments: tuple[str, ...], printed: str
) -> None:
    code, all_printed = typed(folder, *arguments)
    assert code == 2
    assert all_printed.startswith("usage: relet")
    assert printed in all_printed.splitlines()[-1]


def test_only_required_arguments_are_asked_for(typed: CommandLine, folder: Path) -> None:
    for command in ("jobs", "queues", "schedules"):
        assert typed(folder, command)[1].endswith("the following arguments are required: APP\n")


def test_version_and_help(typed: CommandLine, folder: Path) -> None:
    assert typed(folder, "--version") == (0, f"relet {version('relet')}\n")
    code, printed = typed(folder, "--help")
    assert (code, "worker" in printed, "migrate" in printed) == (0, True, True)
    code, printed = typed(folder, "worker", "--help")
    assert code == 0
    options = ("--queue", "--concurrency", "--processes", "--tenant", "--max-jobs", "--log-format", "exit codes")
    assert [word for word in options if word not in printed] == []
    assert "--supervisor-pipe" not in printed


@pytest.mark.parametrize("command", ["jobs", "migrate", "prune"])
def test_an_unreachable_database_is_reported_at_once_and_without_the_password(
    typed: CommandLine, tmp_path: Path, command: str
) -> None:
    write_app(tmp_path, "postgresql://ada:swordfish@127.0.0.1:1/jobs")
    printed = typed.refusal(tmp_path, command, "shop:app")
    assert "cannot connect to postgresql://ada" in printed
    assert "127.0.0.1:1/jobs" in printed
    assert "swordfish" not in (tmp_path / "said").read_text()


def test_a_password_that_is_refused_is_not_printed(typed: CommandLine, tmp_path: Path) -> None:
    with refusing("password authentication failed for ada: {password} is wrong") as port:
        write_app(tmp_path, f"postgresql://ada:swordfish@127.0.0.1:{port}/jobs")
        assert "is wrong" in typed.refusal(tmp_path, "worker", "shop:app")
    assert "swordfish" not in (tmp_path / "said").read_text()


def test_a_worker_that_could_not_start_does_not_say_that_it_stopped(typed: CommandLine, tmp_path: Path) -> None:
    with refusing("password authentication failed") as port:
        write_app(tmp_path, f"postgresql://ada:swordfish@127.0.0.1:{port}/jobs")
        code, printed = typed(tmp_path, "worker", "shop:app")
    assert code == 1
    assert "stopped" not in printed
    assert not (tmp_path / "notes").exists()  # where WorkerStarted and WorkerStopped are noted


@pytest.mark.parametrize("options", [(), ("--processes", "2"), ("--tenant", "acme=1")])
def test_a_missing_migration_names_the_command_and_that_command_works(
    typed: CommandLine, pg_server: Server, tmp_path: Path, schema: str, options: tuple[str, ...]
) -> None:
    shop = Shop(tmp_path, pg_server.dsn, schema)
    try:
        printed = typed.refusal(tmp_path, "worker", "shop:app", *options)
        command = re.search(r"relet (migrate shop:app(?: --tenant acme)?)", printed)
        assert command is not None, printed
        assert re.fullmatch(r"(tenant acme of )?\S+: applied 1.*\n", typed(tmp_path, *command[1].split())[1])
        code, printed = typed(tmp_path, *command[1].split())
        assert (code, "is up to date" in printed) == (0, True)
        shop.start(*options, ready=False)
        shop.noted("WorkerStarted")
    finally:
        shop.close()
        pg_server.drop_schema(schema)
        pg_server.drop_schema(f"{schema}_acme")


def test_a_schema_that_is_too_new_says_to_upgrade(typed: CommandLine, tmp_path: Path) -> None:
    write_app(tmp_path, "sqlite:///relet.db")
    assert typed(tmp_path, "migrate", "shop:app")[0] == 0
    with closing(sqlite3.connect(tmp_path / "relet.db")) as connection, connection:
        connection.execute("insert into relet_migrations (version, applied_at) values (999, 0)")
    for command in ("worker", "migrate"):
        printed = typed.refusal(tmp_path, command, "shop:app")
        assert "is at version 999" in printed
        assert "upgrade relet" in printed


def test_logs_are_lines_to_read(shop: Shop) -> None:
    worker = shop.start()
    jobs = {task: shop.one(task, "words") for task in ("log_text", "log_text_on_loop")}
    shop.over("succeeded")
    assert worker.send(signal.SIGTERM).code() == 0
    assert [line for line in worker.lines if not TEXT_LINE.fullmatch(line)] == []
    for task, job in jobs.items():
        assert f"shop: heard: words [{task} {job.id} attempt 1]" in worker.log
    assert "10 slots" in worker.log


@pytest.mark.long
def test_json_logs_tell_the_job_of_each_record_of_a_handler(shop: Shop) -> None:
    worker = shop.start("--log-format", "json")
    text = 'one "line"\nand ünother'
    jobs = {task: shop.one(task, text) for task in ("log_text", "log_text_on_loop", "log_text_in_process")}
    shop.over("succeeded")
    assert worker.send(signal.SIGTERM).code() == 0
    records = [json.loads(line) for line in worker.lines]
    for record in records:
        assert {"time", "level", "logger", "message"} <= record.keys()
    logged = {record["task"]: record for record in records if record["logger"] == "shop"}
    for task, job in jobs.items():
        assert logged[task]["job_id"] == job.id
        assert logged[task]["attempt"] == 1
        assert logged[task]["message"] == f"heard: {text}"
        assert logged[task]["queue"] == "default"
    assert len({record["worker"] for record in records if "worker" in record}) == 1
    stopped = [record for record in records if record["message"] == "Stopped"]
    assert stopped
    assert "job_id" not in stopped[-1]


@pytest.mark.long
def test_records_of_a_process_are_marked_in_readable_logs_as_well(shop: Shop) -> None:
    worker = shop.start()
    job = shop.one("log_text_in_process", "words")
    shop.over("succeeded")
    assert worker.send(signal.SIGTERM).code() == 0
    assert f"shop: heard: words [log_text_in_process {job.id} attempt 1]" in worker.log


def test_the_log_level_is_obeyed(shop: Shop) -> None:
    worker = shop.start("--log-level", "error", ready=False)
    shop.noted("WorkerStarted")
    shop.one("log_text", "words")
    shop.over("succeeded")
    assert worker.send(signal.SIGTERM).code() == 0
    assert worker.log == ""


def test_an_app_may_be_the_only_one_of_its_module(shop: Shop) -> None:
    text = APP.format(url=shop.url, schema=shop.schema).replace("app = App", "jobs = App", 1).replace("@app.", "@jobs.")
    (shop.place / "store.py").write_text(text.replace("app.on", "jobs.on"))
    job = shop.one("quick")
    worker = shop.run("worker", "store")
    shop.started(job)
    assert worker.send(signal.SIGTERM).code() == 0
