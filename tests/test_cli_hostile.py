"""Text from jobs is printed as text: nothing in it reaches a terminal as a command, or rich as markup."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from relet._core.job import Progress
from relet._store.flows import lease
from tests.harness import harness_of
from tests.plugin.command_line import CommandLine
from tests.ptys import OnTerminal
from tests.shops import CliShop, a_cli_shop

#: Clears the screen, sets the title, writes backwards, returns the carriage, in C1 as well; and markup of rich.
EVIL = "\x1b[2J\x1b]0;owned\x07\u202eback\x9b31mred\r over \x08\x7f [bold red]loud[/] [/nosuch] \u2028"
PRINTABLE_EVIL = "[red]a[/] [/nosuch] ]8;; 'quoted' \\[x]"
COMMANDS = (
    ("jobs", "shop:app"), ("jobs", "shop:app", "show", "JOB"), ("explain", "shop:app", "JOB"),
    ("jobs", "shop:app", "attempts", "JOB"), ("jobs", "shop:app", "chain", "JOB"), ("jobs", "shop:app", "wait", "DONE"),
    ("jobs", "shop:app", "DONE"), ("jobs", "shop:app", "show", "RUNNING"), ("jobs", "shop:app", "dependencies", "LAST"),
    ("queues", "shop:app"), ("targets", "shop:app"), ("targets", "shop:app", PRINTABLE_EVIL), ("failures", "shop:app"),
    ("audit", "shop:app"), ("schedules", "shop:app"), ("schedules", "shop:app", "show", PRINTABLE_EVIL),
    ("top", "shop:app", "--once"), ("workers", "shop:app", EVIL), ("enqueue", "shop:app", EVIL),
    ("enqueue", "shop:app", "charge", "--payload", EVIL), ("jobs", "shop:app", EVIL),
)  # fmt: skip


@pytest.fixture(scope="module")
def evil_shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[CliShop, dict[str, str]]]:
    """A shop whose jobs say something that they should not in every field that is free."""
    folder = tmp_path_factory.mktemp("evil")
    with a_cli_shop(folder, f"sqlite:///{folder / 'jobs.db'}") as shop:
        client = shop.client.acting_as(PRINTABLE_EVIL)
        using = shop.charge.using(target=PRINTABLE_EVIL, group=PRINTABLE_EVIL, unique=PRINTABLE_EVIL)
        failed = client.enqueue(using.draft(EVIL))
        harness_of(shop.app).promote_all()
        (claimed,) = harness_of(shop.app).claim(1, queues=("billing",), worker=PRINTABLE_EVIL)
        harness_of(shop.app).fail(claimed, f"{EVIL}\n{EVIL}")
        done = client.enqueue(shop.charge.draft(EVIL))
        client.complete(done, EVIL)
        running = client.enqueue(shop.charge.draft(EVIL))
        (claimed,) = harness_of(shop.app).claim(1, queues=("billing",), worker=PRINTABLE_EVIL)
        shop.app._store().run(lease.progress, {claimed.lease: Progress(1, 2, EVIL)})
        client.schedules.put(PRINTABLE_EVIL, shop.charge.draft(EVIL), every=60)
        last = client.enqueue(shop.sweep.using(depends_on=[done, failed]).draft())
        client.limit_queue("billing", rate=5, per=60, group=PRINTABLE_EVIL)
        yield shop, {"JOB": failed.id, "DONE": done.id, "RUNNING": running.id, "LAST": last.id}


def is_harmless(text: str) -> bool:
    return all(letter.isprintable() or letter in "\n\t" for letter in text)


@pytest.mark.parametrize(
    "command", COMMANDS, ids=lambda command: " ".join(command)[:40].encode("ascii", "ignore").decode()
)
def test_nothing_that_a_terminal_obeys_is_printed(
    typed: CommandLine, evil_shop: tuple[CliShop, dict[str, str]], command: tuple[str, ...]
) -> None:
    shop, ids = evil_shop
    _, printed = typed(shop.folder, *(ids.get(word, word) for word in command))
    assert printed.strip()
    assert is_harmless(printed)


def test_markup_is_printed_as_it_is(typed: CommandLine, evil_shop: tuple[CliShop, dict[str, str]]) -> None:
    shop, ids = evil_shop
    assert "[bold red]loud[/] [/nosuch]" in typed(shop.folder, "jobs", "shop:app", ids["JOB"])[1]
    assert PRINTABLE_EVIL in typed(shop.folder, "targets", "shop:app")[1]


def test_json_is_left_as_it_is(typed: CommandLine, evil_shop: tuple[CliShop, dict[str, str]]) -> None:
    shop, ids = evil_shop
    document = json.loads(typed(shop.folder, "jobs", "shop:app", ids["JOB"], "--json")[1])
    assert document["job"]["error"].splitlines()[0] == EVIL.splitlines()[0]


@pytest.mark.parametrize(
    "command",
    [("jobs", "shop:app", "--state", "failed"), ("failures", "shop:app"), ("targets", "shop:app"), ("top", "shop:app")],
    ids=" ".join,
)
def test_tables_drawn_by_rich_are_harmless_as_well(
    evil_shop: tuple[CliShop, dict[str, str]], command: tuple[str, ...]
) -> None:
    shop, _ = evil_shop
    with OnTerminal(shop.folder, *command, size=(200, 40)) as terminal:
        if command[0] == "top":
            terminal.shows("FAILED 1", "[bold red]loud[/]")
            terminal.press("q")
        assert terminal.code() == 0
        drawn = terminal.all_drawn
    assert "\x1b[" in drawn, "nothing was drawn by rich"
    for part in ("\x1b[2J", "\x1b]0;", "\x9b", "\u202e", "\x08"):
        assert part not in drawn
    assert command[0] == "jobs" or "[/nosuch]" in drawn
