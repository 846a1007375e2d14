"""`relet enqueue`: arguments from flags, JSON and files; options; and error messages."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from relet import new_id
from tests.plugin.command_line import CommandLine
from tests.shops import CliShop


@pytest.mark.long
def test_a_job_is_enqueued_and_its_id_printed(typed: CommandLine, any_shop: CliShop) -> None:
    code, printed = typed(
        any_shop.folder, "enqueue", "shop:app", "charge", "--arg", "account=acct-7", "--arg", "cents=900"
    )
    assert code == 0
    job = any_shop.client.get(printed.strip())
    assert job is not None
    assert (job.task, job.queue, json.loads(job.payload_json)) == (
        "charge",
        "billing",
        {"account": "acct-7", "cents": 900},
    )


@pytest.mark.parametrize(
    ("argument", "stored"),
    [
        ("left=Ada", {"left": "Ada"}),
        ("left=7", {"left": 7}),
        ('left="7"', {"left": "7"}),
        ("left=", {"left": ""}),
        ("left=a=b", {"left": "a=b"}),
        ("left=null", {"left": None}),
        ('left={"a": [1]}', {"left": {"a": [1]}}),
    ],
)
def test_an_argument_is_json_or_else_text(typed: CommandLine, shop: CliShop, argument: str, stored: object) -> None:
    code, printed = typed(shop.folder, "enqueue", "shop:app", "pair", "--arg", argument, "--json")
    assert code == 0
    (job,) = json.loads(printed)["jobs"]
    assert job["payload"] == stored


def test_all_options_of_a_job_can_be_set(typed: CommandLine, shop: CliShop) -> None:
    first = shop.many(1)[0]
    job_id = new_id()
    code, printed = typed(
        shop.folder, "enqueue", "shop:app", "charge", "--payload", '{"account": "a"}', "--queue", "mail",
        "--priority", "7", "--delay", "2h", "--target", "acct", "--group", "acme", "--unique", "inv-9",
        "--unique-for", "1d", "--max-attempts", "9", "--timeout", "30", "--id", job_id, "--on-expired", "fail",
        "--backoff", "2s,5m", "--on-failure", "continue", "--on-dependency-failure", "run", "--depends-on", first.id,
    )  # fmt: skip
    assert (code, printed) == (0, f"{job_id}\n")
    job = shop.client.get(job_id)
    assert job is not None
    assert (job.queue, job.priority, job.target, job.group, job.unique) == ("mail", 7, "acct", "acme", "inv-9")
    assert job.max_attempts == 9
    assert timedelta(hours=1, minutes=59) < job.run_at - datetime.now(UTC) <= timedelta(hours=2)
    assert [one.chain for one in shop.client.dependencies(job)] == [first.id]


def test_a_job_that_waits_is_replaced(typed: CommandLine, shop: CliShop) -> None:
    (there,) = shop.many(1, unique="inv-9", delay=3600)
    again = ("enqueue", "shop:app", "charge", "--arg", "account=new", "--unique", "inv-9", "--replace")
    assert there.id in typed(shop.folder, *again, "payload", "--delay", "1")[1]
    job = shop.client.get(there)
    assert job is not None
    assert (json.loads(job.payload_json)["account"], job.run_at) == ("new", there.run_at)
    assert typed(shop.folder, *again, "all", "--delay", "1")[0] == 0
    job = shop.client.get(there)
    assert job is not None
    assert job.run_at < there.run_at


def test_a_moment_to_run_at_is_understood(typed: CommandLine, shop: CliShop) -> None:
    _, printed = typed(shop.folder, "enqueue", "shop:app", "sweep", "--run-at", "2031-05-01T09:30+02:00")
    job = shop.client.get(printed.strip())
    assert job is not None
    assert job.run_at == datetime(2031, 5, 1, 7, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        '[{"account": "a"}, {"account": "b", "cents": 1}]',
        '{"account": "a"}\n\n{"account": "b", "cents": 1}\n',
    ],
)
def test_a_file_makes_many_jobs(typed: CommandLine, shop: CliShop, text: str) -> None:
    (shop.folder / "piped").write_text(text)
    code, printed = typed(shop.folder, "enqueue", "shop:app", "charge", "--file", "-")
    assert code == 0
    jobs = [shop.client.get(line) for line in printed.splitlines()]
    assert [json.loads(job.payload_json)["account"] for job in jobs if job] == ["a", "b"]


def test_a_file_is_all_or_nothing(typed: CommandLine, shop: CliShop) -> None:
    (shop.folder / "jobs.jsonl").write_text('{"account": "a"}\n{"account": 5}\n')
    assert "Expected `str`" in typed.refusal(shop.folder, "enqueue", "shop:app", "charge", "--file", "jobs.jsonl")
    assert shop.client.count() == 0


def test_a_job_that_was_there_already_is_reported_beside_its_id(typed: CommandLine, shop: CliShop) -> None:
    (there,) = shop.many(1, unique="inv-9")
    code, printed = typed(shop.folder, "enqueue", "shop:app", "charge", "--arg", "account=x", "--unique", "inv-9")
    assert code == 0
    assert sorted(printed.splitlines()) == [there.id, f"relet: Job {there.id} already exists; it is queued."]


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        (("chrge",), "no task is named 'chrge'; did you mean charge?"),
        (("zzz",), "no task is named 'zzz'; there are charge, pair, sweep"),
        (("charge",), "charge() missing a required argument: 'account'"),
        (("charge", "--arg", "account=7"), """Expected `str`, got `int`; to pass text, use --arg 'account="7"'"""),
        (("charge", "--arg", "account=a", "--arg", "acount=a"), "got an unexpected keyword argument 'acount'"),
        (("charge", "--arg", "self=a"), "self"),
        (("charge", "--arg", "account"), "--arg needs NAME=VALUE, such as --arg account=acct-7, not 'account'."),
        (("pair", "--arg", 'left={"a"'), '--arg left is not JSON (Input data was truncated): {"a"'),
        (("charge", "--payload", "[1]"), "--payload: needs a JSON object of arguments, such as"),
        (("charge", "--payload", "{"), "--payload is not JSON"),
        (("charge", "--arg", "account=a", "--payload", "{}"), "Use only one of --arg and --payload."),
        (("charge", "--file", "nosuch.json"), "Cannot read nosuch.json: No such file or directory"),
        (("charge", "--file", "-"), "- is not JSON"),
        (("sweep", "--delay", "5", "--run-at", "2031-01-01"), "run_at says when and delay says in how long"),
        (("sweep", "--priority", "1000"), "priority must be a whole number from -100 to 100, not 1000"),
        (("sweep", "--depends-on", "nonsense"), "a job id is a UUIDv7"),
    ],
)
def test_an_enqueue_that_is_refused_is_explained(
    typed: CommandLine, still_shop: CliShop, arguments: tuple[str, ...], printed: str
) -> None:
    assert printed in typed.refusal(still_shop.folder, "enqueue", "shop:app", *arguments, codes=(2,))


@pytest.mark.parametrize(
    ("option", "value", "printed"),
    [
        ("--delay", "soon", "invalid duration 'soon': use seconds or a unit, such as 90, 15m, 2h, 7d"),
        ("--run-at", "noon", "invalid time 'noon': use a duration"),
        ("--on-expired", "explode", "invalid choice: 'explode'"),
        ("--backoff", "1s,", "invalid duration ''"),
    ],
)
def test_options_that_cannot_be_parsed_show_the_usage(
    typed: CommandLine, still_shop: CliShop, option: str, value: str, printed: str
) -> None:
    code, all_printed = typed(still_shop.folder, "enqueue", "shop:app", "sweep", option, value)
    assert code == 2
    assert printed in all_printed.splitlines()[-1]
