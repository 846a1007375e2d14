"""`relet top`, on a real terminal of this machine; and what its keys and its page mean, without one."""

from __future__ import annotations

import io
import json
import signal
import sqlite3
from contextlib import closing

import pytest
from rich.console import Console

from relet._cli.top.poller import Message, SnapshotReader
from relet._cli.top.screen import frame, share
from relet._cli.top.state import TABLES, TopState
from relet._cli.top.terminal import keys_of
from tests.harness import harness_of
from tests.plugin.command_line import CommandLine
from tests.ptys import ALTERNATE, CURSOR_VISIBLE, ORDINARY, OnTerminal
from tests.shops import CliShop
from tests.worker.programs import until


@pytest.fixture
def busy(shop: CliShop) -> CliShop:
    """Two failed jobs, one that runs, three that wait."""
    return made_busy(shop)


def made_busy(shop: CliShop) -> CliShop:
    shop.many(6)
    shop.failed(2, "ValueError: no money")
    harness_of(shop.app).claim(1, queues=("billing",), worker="host:1:a")
    return shop


def queue_is(shop: CliShop, *, paused: bool) -> None:
    until(lambda: shop.client.queues()[0].paused is paused, lambda: f"paused is not {paused}")


def as_before(terminal: OnTerminal) -> bool:
    drawn = terminal.all_drawn
    left = drawn.rindex(ORDINARY) > drawn.rindex(ALTERNATE) and drawn.rindex(CURSOR_VISIBLE) > drawn.rindex(ALTERNATE)
    return left and terminal.modes() == terminal.modes_before


@pytest.mark.long
def test_it_draws_steers_and_leaves_the_terminal_as_it_was(any_shop: CliShop) -> None:
    shop = made_busy(any_shop)
    with OnTerminal(shop.folder, "top", "shop:app") as terminal:
        page = terminal.shows("▸ QUEUES 1", "WORKERS 0", "RUNNING 1", "FAILED 2", "ValueError: no money", "q quit")
        assert len(page.splitlines()) == 24
        assert max(len(line) for line in page.splitlines()) <= 80
        assert terminal.modes() != terminal.modes_before
        terminal.press("p")
        terminal.shows("Pause queue billing? Workers stop claiming; running jobs continue.  y/n")
        terminal.press("n")
        terminal.shows("Nothing was changed.")
        assert not shop.client.queues()[0].paused
        terminal.press("py")
        terminal.shows("Queue billing is paused.")
        queue_is(shop, paused=True)
        terminal.press("py")
        queue_is(shop, paused=False)
        terminal.press("\t\t")
        terminal.shows("▸ RUNNING 1")
        terminal.press("c")
        terminal.shows("Cancel charge", "It is asked to stop.  y/n")
        terminal.press("y")
        terminal.shows("is running, asked to cancel", "cancel asked")
        terminal.press("\t\x1b[B\r")
        terminal.shows("why", "it has failed after 1 of 2 attempts: ValueError: no money", "ATTEMPT", "esc back")
        terminal.press("ry")
        terminal.shows("is pending")
        terminal.press("\x1b")
        terminal.shows("FAILED 1")
        terminal.resize(60, 16)
        terminal.draws(lambda page: "▸ FAILED" in page and len(page.splitlines()) == 16, "16 lines")
        terminal.press("q")
        assert terminal.code() == 0
        assert as_before(terminal)
    assert {"pause_queue", "resume_queue", "cancel", "resume"} == {one.what for one in shop.client.audit().entries}
    assert all(one.who.startswith("cli:") for one in shop.client.audit().entries)


@pytest.mark.parametrize(("how", "code"), [("\x03", 130), (signal.SIGTERM, 143)])
def test_however_it_is_stopped_the_terminal_is_as_it_was(busy: CliShop, how: str | signal.Signals, code: int) -> None:
    with OnTerminal(busy.folder, "top", "shop:app") as terminal:
        terminal.shows("QUEUES 1")
        if isinstance(how, str):
            terminal.press(how)
        else:
            terminal.process.send_signal(how)
        assert terminal.code() == code
        assert as_before(terminal)


#: Raises an unexpected error after the first page.
BROKEN = """
import sys
from relet._cli import main
from relet._cli.top.poller import SnapshotReader
read = SnapshotReader.read
def once(self, watched=None):
    SnapshotReader.read = lambda self, watched=None: 1 / 0
    return read(self, watched)
SnapshotReader.read = once
main(sys.argv[1:])
"""


@pytest.mark.long
def test_after_an_error_the_terminal_is_as_it_was_and_the_error_is_printed(busy: CliShop) -> None:
    with OnTerminal(busy.folder, "top", "shop:app", program=("-c", BROKEN)) as terminal:
        assert terminal.code() == 1
        assert as_before(terminal)
        assert "ZeroDivisionError" in terminal.all_drawn.rpartition(ORDINARY)[2]


@pytest.mark.long
def test_without_a_terminal_it_prints_a_page_and_ends(typed: CommandLine, busy: CliShop) -> None:
    code, printed = typed(busy.folder, "top", "shop:app")
    assert code == 0
    heads = [line.split()[:2] for line in printed.splitlines() if line.split()[0].lower() in TABLES]
    assert heads == [["QUEUES", "1"], ["WORKERS", "0"], ["RUNNING", "1"], ["FAILED", "2"]]
    assert "q quit" not in printed
    seen = json.loads(typed(busy.folder, "top", "shop:app", "--json")[1])
    assert [one["queue"] for one in seen["queues"]] == ["billing"]
    assert (len(seen["running"]), len(seen["failed"]), seen["workers"], seen["rates"]) == (1, 2, [], {})


@pytest.mark.long
def test_a_store_that_goes_away_is_reported_and_comes_back(busy: CliShop) -> None:
    with OnTerminal(busy.folder, "top", "shop:app") as terminal:
        terminal.shows("FAILED 2")
        with closing(sqlite3.connect(busy.folder / "jobs.db")) as other:
            other.execute("alter table relet_jobs rename to away")
            terminal.shows("No data for", "relet_jobs", "FAILED 2")
            other.execute("alter table away rename to relet_jobs")
            terminal.draws(lambda page: "FAILED 2" in page and "No data" not in page, "the store again")
        terminal.press("q")
        assert terminal.code() == 0


# Without a terminal


@pytest.fixture
def state(busy: CliShop) -> TopState:
    return TopState(SnapshotReader(busy.client).read())


def drawn(state: TopState, width: int = 80, height: int = 24) -> list[str]:
    console = Console(file=io.StringIO(), width=width, height=height, color_system=None)
    console.print(frame(state, width, height))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


@pytest.mark.parametrize(("width", "height"), [(80, 24), (200, 60), (40, 10), (20, 9), (132, 24)])
def test_a_page_is_as_large_as_the_terminal(state: TopState, width: int, height: int) -> None:
    for key in ("", "p", "n", "/", "esc", "tab", "tab", "enter"):
        state.press(key)
        lines = drawn(state, width, height)
        assert len(lines) == height
        assert max(map(len, lines)) <= width


def test_the_selection_stays_with_its_row(state: TopState, busy: CliShop) -> None:
    for key in ("tab", "tab", "tab", "down"):
        state.press(key)
    before = state.lines("failed")[1].id
    busy.many(1)
    busy.client.resume_queue("billing")
    busy.failed(10)
    state.update(SnapshotReader(busy.client).read())
    at = state.chosen("failed")
    assert at is not None
    assert len(state.lines("failed")) > 2
    assert state.lines("failed")[at].id == before


def test_a_filter_is_typed_kept_and_dropped(state: TopState) -> None:
    for key in ("/", *"NO moneX", "backspace", "y"):
        state.press(key)
    assert [len(state.lines(table)) for table in TABLES] == [0, 0, 0, 2]
    assert "/NO money" in "\n".join(drawn(state))
    state.press("enter")
    assert state.filter == "NO money"
    state.press("esc")
    assert len(state.lines("queues")) == 1


def test_keys_that_mean_nothing_here_say_so(state: TopState) -> None:
    state.press("c")
    assert state.question is None
    assert state.message == Message("Key c does nothing here.", bad=True)


def test_a_store_that_is_away_is_reported_until_it_is_back(state: TopState) -> None:
    state.update(Message("cannot connect", bad=True, down=True))
    assert drawn(state)[-2].startswith("No data for ")
    state.press("j")
    assert "cannot connect" in drawn(state)[-2]
    state.update(state.snapshot)
    assert not drawn(state)[-2].strip()


def test_all_failed_jobs_of_a_queue_go_on(state: TopState, busy: CliShop) -> None:
    state.press("r")
    assert "Resume all 2 failed jobs of queue billing?" in "\n".join(drawn(state))
    state.press("y")
    (action,) = state.take_actions()
    assert action(busy.client) == "Resumed 2 jobs of queue billing, 0 refused."
    assert state.take_actions() == []
    assert busy.client.count(state="failed") == 0


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("jk", ["j", "k"]),
        ("\x1b[A\x1bOB", ["up", "down"]),
        ("\x1b", ["esc"]),
        ("\x1b[Z\t\r", ["back-tab", "tab", "enter"]),
        ("\x1b[1;5Cq", ["q"]),
        ("ü", ["ü"]),
    ],
)
def test_keys_are_recognised(text: str, keys: list[str]) -> None:
    assert keys_of(text) == keys


@pytest.mark.parametrize(
    ("room", "wanted", "first", "lines"),
    [
        (15, [1, 1, 1, 1], 0, [1, 1, 1, 1]),
        (12, [100, 1, 100, 1], 2, [5, 1, 5, 1]),
        (5, [9, 9, 9, 9], 3, [1, 1, 1, 2]),
        (0, [9, 9, 9, 9], 0, [0, 0, 0, 0]),
    ],
)
def test_room_is_shared(room: int, wanted: list[int], first: int, lines: list[int]) -> None:
    assert share(room, wanted, first) == lines
