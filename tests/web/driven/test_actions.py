"""Actions in the browser: each asks for confirmation, does what it says, and is recorded in the audit trail."""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("playwright")
pytest.importorskip("starlette")

from relet import App, Client, Job
from relet._core.job import Raised, Snoozed
from tests.web import browser, example_data
from tests.web.driven.conftest import Opens, Tab

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

SOON = 10_000  # milliseconds to wait for an effect


@dataclass
class Shop:
    """A small shop, served: a job in each state that people act upon."""

    app: App
    base: str
    jobs: dict[str, Job[Any]]

    @property
    def client(self) -> Client:
        return self.app.client

    def job(self, name: str) -> Job[Any]:
        found = self.client.get(self.jobs[name])
        assert found is not None
        return found

    def state(self, name: str) -> str:
        return str(self.job(name).state)

    def done(self) -> list[tuple[str, str]]:
        """The audit trail, the latest entry first."""
        return [(one.who, one.what) for one in self.client.audit().entries]


def _failed(
    data: example_data.ExampleData, task: str, using: dict[str, Any] | None = None, **arguments: Any
) -> Job[Any]:
    job = data.put(task, 60, using, **arguments)
    data.promote(data.now - 59)
    claimed = data.claim(job.queue, data.now - 50, "shop-1:4711:a3f0")
    data.settle(claimed, Raised("shop.CardExpired: of account 7\n\nTraceback ...", fatal=True), data.now - 40)
    return job


@pytest.fixture
def shop(chromium: Browser) -> Iterator[Shop]:
    app = example_data.shop("sqlite:///:memory:")
    app.client.migrate()
    data = example_data.ExampleData(app, time.time(), random.Random(7))
    jobs = {name: _failed(data, "charge", account=name, cents=1) for name in ("failed", "failed too", "failed as well")}
    jobs["other"] = _failed(data, "refund", account="7", order="A-1")
    jobs["holder"] = _failed(data, "charge", {"target": "account/7"}, account="7", cents=1)
    jobs["behind"] = data.put("charge", 30, {"target": "account/7"}, account="7", cents=2)
    jobs["queued"] = data.put("send_receipt", 20, order="A-1", to="a@example.com")
    jobs["later"] = data.put("send_receipt", 10, {"delay": 3600.0}, order="A-2", to="b@example.com")
    jobs["paused"] = app.client.pause(data.put("resize_photo", 10, photo="1.jpg"))
    app.client.schedules.put("stock", app.tasks["sync_stock"].draft("north"), every=3600)
    with browser.serving(app) as base:
        yield Shop(app, base, jobs)
    app.close()


def ask(tab: Tab, button: str | Locator, exact: bool = True) -> Locator:
    """Click an action. Returns its confirmation: a dialog, or without a script a page."""
    found = tab.page.get_by_role("button", name=button, exact=exact).first if isinstance(button, str) else button
    found.click()
    box = tab.page.locator("dialog[open] .confirm-box, #main .confirm-box")
    box.wait_for(timeout=SOON)
    return box


def say_yes(page: Page, box: Locator) -> str:
    """Confirm. Returns the message of the next page."""
    box.locator(".ends button").click()
    flash = page.locator(".flash p")
    flash.wait_for(timeout=SOON)
    return flash.inner_text()


@dataclass
class Action:
    """An action: its page and button, the text of its confirmation, and its effect."""

    at: str  # names of jobs in braces become their ids
    button: str
    words: list[str]
    fill: dict[str, str]
    came: Callable[[Shop], object]
    message: str
    what: str


def _queue(shop: Shop, name: str) -> Any:
    return next(one for one in shop.client.queues() if one.queue == name)


def _limits(shop: Shop) -> Any:
    info = _queue(shop, "billing")
    return info.max_running, [(one.rate, one.per) for one in info.rates]


ACTIONS: dict[str, Action] = {
    "cancel": Action(
        "/jobs/{queued}", "Cancel", ["Cancel send_receipt", "It is queued: it will not run any more", "not be resumed"],
        {}, lambda shop: shop.state("queued") == "cancelled", "is cancelled", "cancel",
    ),
    "pause": Action(
        "/jobs/{queued}", "Pause", ["Pause send_receipt", "it will not start", "until it is resumed"],
        {}, lambda shop: shop.state("queued") == "paused", "is paused", "pause",
    ),
    "resume": Action(
        "/jobs/{failed}", "Resume", ["It has failed after 1 attempt", "with 5 new attempts", "shop.CardExpired"],
        {}, lambda shop: shop.state("failed") in ("pending", "queued"), "is resumed", "resume",
    ),
    "run now": Action(
        "/jobs/{later}", "Run now", ["It is pending, due", "are due at once"],
        {}, lambda shop: shop.job("later").run_at <= datetime.now(UTC), "is due now", "run_now",
    ),
    "complete": Action(
        "/jobs/{paused}", "Complete", ["it ends as succeeded, with the result below"], {"result": '"1.webp"'},
        lambda shop: (shop.state("paused"), shop.job("paused").result_json) == ("succeeded", '"1.webp"'),
        "has succeeded", "complete",
    ),
    "delete": Action(
        "/jobs/{paused}", "Delete", ["the job and its history are permanently deleted"],
        {}, lambda shop: shop.client.get(shop.jobs["paused"]) is None, "is deleted", "delete",
    ),
    "pause queue": Action(
        "/queues", "Pause", ["Pause queue billing?", "No worker claims from queue billing"],
        {}, lambda shop: _queue(shop, "billing").paused, "Queue billing is paused", "pause_queue",
    ),
    "limit queue": Action(
        "/queues", "Limits", ["Limit queue billing", "Now: no limits"], {"max_running": "7", "rate": "50", "per": "10"},
        lambda shop: _limits(shop) == (7, [(50, 10.0)]),
        "the limits are set", "limit_queue",
    ),
    "pause schedule": Action(
        "/schedules", "Pause", ["Pause schedule stock?", "does not tick until it is resumed"],
        {}, lambda shop: shop.client.schedules.all()[0].paused, "Schedule stock is paused", "pause_schedule",
    ),
    "run schedule": Action(
        "/schedules/stock", "Run now", ["A job of task sync_stock is enqueued now"],
        {}, lambda shop: shop.client.count(task="sync_stock") == 1,
        "is enqueued, in addition to the ticks", "run_now_schedule",
    ),
    "resume the holder of a target": Action(
        "/targets?name=account%2F7", "Resume the holder", ["Resume charge", "It has failed after 1 attempt"],
        {}, lambda shop: shop.state("holder") in ("pending", "queued"), "is resumed", "resume",
    ),
    "resume a group of failures": Action(
        "/failures", "Resume all", ["Resume 4 jobs?", "failed jobs of task charge", "left alone"],
        {}, lambda shop: shop.client.count(state="failed") == 1, "4 jobs: resumed.", "bulk resume",
    ),
    "resume all that match": Action(
        "/jobs?state=failed&task=charge", ".bulk a", ["Resume 4 jobs?", "failed jobs of task charge: 4 just now"],
        {}, lambda shop: shop.client.count(state="failed") == 1, "4 jobs: resumed.", "bulk resume",
    ),
}  # fmt: skip
#: One of each kind: without and with a field, on a queue, and in bulk.
KINDS = ["cancel", "complete", "limit queue", "resume all that match"]
FAST = ["cancel", "complete", "resume all that match"]


def actions_and_scripts() -> Iterator[Any]:
    """`tests/web/test_actions.py` runs all actions without a browser."""
    for name in ACTIONS:
        yield pytest.param(name, True, marks=[] if name in FAST else pytest.mark.long)
    for name in KINDS:
        yield pytest.param(name, False, marks=pytest.mark.long)


@pytest.mark.parametrize(("name", "script"), list(actions_and_scripts()))
def test_an_action_asks_first_and_has_the_effect_that_its_confirmation_names(
    name: str, script: bool, shop: Shop, opens: Opens
) -> None:
    action, tab = ACTIONS[name], opens(shop.base, script=script)
    tab.go(action.at.format(**{name: job.id for name, job in shop.jobs.items()}))
    before = shop.done()
    button = action.button if not action.button.startswith(".") else tab.page.locator(action.button).first
    box = ask(tab, button)
    for words in action.words:
        assert words in box.inner_text()
    if script:
        tab.page.keyboard.press("Escape")
    else:
        box.get_by_role("link", name=re.compile("ack$")).click()
    box.wait_for(state="detached" if not script else "hidden")
    assert (action.came(shop), shop.done()) == (False, before), "going back changes nothing"

    box = ask(tab, button)
    for field, value in action.fill.items():
        box.locator(f"[name={field}]").fill(value)
    assert action.message in say_yes(tab.page, box)
    assert action.came(shop)
    assert shop.done()[0] == ("web:operator", action.what)
    assert tab.troubles == []


@pytest.mark.long
@pytest.mark.parametrize("script", [True, False])
def test_the_selected_are_resumed_and_no_others(script: bool, shop: Shop, opens: Opens) -> None:
    tab = opens(shop.base, script=script)
    tab.go("/jobs?state=failed")
    for name in ("failed", "other"):
        tab.page.locator(f"input[value='{shop.jobs[name].id}']").check()
    if script:
        assert tab.page.locator("[data-selected]").inner_text() == "2 selected"
    box = ask(tab, tab.page.locator(".bulk button", has_text="Resume"))
    assert "Resume 2 jobs?" in box.inner_text()
    assert say_yes(tab.page, box) == "2 jobs: resumed."
    assert "failed" not in (shop.state("failed"), shop.state("other"))
    assert {shop.state(name) for name in ("failed too", "failed as well", "holder")} == {"failed"}


@pytest.mark.long
@pytest.mark.parametrize("script", [True, False])
def test_a_job_is_enqueued_from_a_form_that_names_errors(script: bool, shop: Shop, opens: Opens) -> None:
    tab = opens(shop.base, script=script)
    tab.go("/jobs")
    box = ask(tab, "Enqueue a job")
    box.locator("[name=task]").select_option("charge")
    box.locator(".ends button").click()
    box = tab.page.locator(".confirm-box", has_text="Enqueue charge")
    assert "charge(account: str, cents: int)" in box.inner_text()
    box.locator("[name=payload]").fill('{"account": "acct-7", "cents": "much"}')
    message = say_yes(tab.page, box)
    assert message.startswith("Nothing was changed: ")
    assert "cents" in message
    box = tab.page.locator("#main .confirm-box")
    assert "much" in box.locator("[name=payload]").input_value(), "what was typed is still there"
    box.locator("[name=payload]").fill('{"account": "acct-7", "cents": 500}')
    box.locator("[name=priority]").fill("9")
    box.locator("[name=target]").fill("account/9")
    assert "is enqueued" in say_yes(tab.page, box)
    (job,) = shop.client.jobs(task="charge", target="account/9").jobs
    assert (job.priority, json.loads(job.payload_json)) == (9, {"account": "acct-7", "cents": 500})
    assert tab.page.url.endswith(f"/jobs/{job.id}")
    assert shop.done()[0] == ("web:operator", "enqueue")


@pytest.mark.parametrize("script", [True, pytest.param(False, marks=pytest.mark.long)])
def test_a_failed_job_is_run_again_from_a_form_that_names_errors(script: bool, shop: Shop, opens: Opens) -> None:
    tab, old = opens(shop.base, script=script), shop.jobs["failed"]
    tab.go(f"/jobs/{old.id}")
    box = ask(tab, "Run again")
    assert "This job stays as it is." in box.inner_text()
    assert json.loads(box.locator("[name=arguments]").input_value()) == {"account": "failed", "cents": 1}
    box.locator("[name=arguments]").fill('{"account": "failed", "cents": ')
    assert say_yes(tab.page, box).startswith("Nothing was changed: The text of the field arguments is not JSON: ")
    box = tab.page.locator("#main .confirm-box")
    assert box.locator("[name=arguments]").input_value() == '{"account": "failed", "cents": '
    assert shop.client.count(task="charge") == 5
    box.locator("[name=arguments]").fill('{"account": "failed", "cents": 2}')
    assert f"is enqueued, as a rerun of {old.id[-8:]}" in say_yes(tab.page, box)
    (new, *_) = shop.client.jobs(task="charge").jobs
    assert tab.page.url.endswith(f"/jobs/{new.id}")
    assert (new.rerun_of, new.payload) == (old.id, {"account": "failed", "cents": 2})
    assert shop.done()[0] == ("web:operator", "rerun")
    tab.page.locator(".facts a", has_text=old.id[-12:]).click()
    tab.page.wait_for_url(f"**/jobs/{old.id}")
    assert shop.state("failed") == "failed"


@pytest.mark.long
@pytest.mark.parametrize("script", [True, False])
def test_the_limit_of_a_group_is_set_changed_and_removed(script: bool, shop: Shop, opens: Opens) -> None:
    tab = opens(shop.base, script=script)
    tab.go("/queues")
    for group, typed, limits in (("*", "2", {"*": 2}), ("acme", "5", {"*": 2, "acme": 5})):
        box = ask(tab, "Limits")
        if box.locator("#limits-by-group").get_attribute("open") is None:
            box.locator("#limits-by-group summary").click()
        box.locator("[name=limited_group]").last.fill(group)
        box.locator("[name=group_limit]").last.fill(typed)
        assert "the limits are set" in say_yes(tab.page, box)
        assert _group_limits(shop) == limits
    for label, typed, limits in (("Group acme", "7", {"*": 2, "acme": 7}), ("Each group", "", {"acme": 7})):
        box = ask(tab, "Limits")
        box.get_by_label(label, exact=True).fill(typed)
        assert "the limits are set" in say_yes(tab.page, box)
        assert _group_limits(shop) == limits
    assert "at most 7 of group acme run at once" in tab.page.inner_text("#main")
    assert tab.troubles == []


def _group_limits(shop: Shop) -> dict[str, int]:
    return {one.group: one.max_running for one in _queue(shop, "billing").group_limits}


@pytest.mark.long
def test_an_old_confirmation_names_the_new_state_of_the_job(shop: Shop, opens: Opens) -> None:
    tab = opens(shop.base)
    tab.go(f"/confirm/cancel?job={shop.jobs['queued'].id}&back=/queues")
    shop.client.complete(shop.jobs["queued"])
    message = say_yes(tab.page, tab.page.locator("#main .confirm-box"))
    assert message.startswith("Nothing was changed: ")
    assert "succeeded" in message
    assert tab.page.url.endswith("/queues")

    tab.go(f"/confirm/delete?job={shop.jobs['paused'].id}")
    again = tab.context.new_page()
    again.goto(tab.page.url)
    assert say_yes(tab.page, tab.page.locator("#main .confirm-box")) == "The job is deleted."
    message = say_yes(again, again.locator("#main .confirm-box"))
    assert message.startswith("Nothing was changed: ")
    assert shop.jobs["paused"].id in message
    assert [what for _, what in shop.done()].count("delete") == 1
    tab.page.go_back()
    page = tab.page.inner_text("#main")
    assert f"There is no job {shop.jobs['paused'].id}" in page
    assert "may have been deleted" in page


@pytest.mark.long
def test_the_message_of_an_action_is_displayed_once(shop: Shop, opens: Opens) -> None:
    tab = opens(shop.base)
    tab.go("/queues")
    say_yes(tab.page, ask(tab, "Pause"))
    tab.page.reload()
    assert tab.page.locator(".flash").count() == 0


def test_a_problem_of_the_overview_is_fixed_by_its_button(shop: Shop, opens: Opens) -> None:
    shop.client.pause_queue("mail")
    tab = opens(shop.base)
    tab.go("/")
    row = tab.page.locator(".attention li", has_text="Queue mail is paused")
    box = ask(tab, row.get_by_role("button", name="Resume it"))
    assert say_yes(tab.page, box) == "Queue mail is resumed."
    assert not _queue(shop, "mail").paused
    assert row.count() == 0
    assert tab.troubles == []


@pytest.mark.long
def test_a_job_that_waits_for_a_signal_gets_it(shop: Shop, opens: Opens) -> None:
    data = example_data.ExampleData(shop.app, time.time(), random.Random(7))
    job = data.put("fulfil_order", 20, order="A-1")
    data.settle(data.claim("orders", data.now - 10, "shop-1:4711:a3f0"), Snoozed(3600.0, "approval"), data.now - 9)
    tab = opens(shop.base)
    tab.go(f"/jobs/{job.id}")
    box = ask(tab, "Send signal")
    assert box.locator("[name=name]").input_value() == "approval"
    box.locator("[name=value]").fill('{"by": "ada"}')
    assert say_yes(tab.page, box) == "Signal approval is sent."
    (row,) = [one for one in shop.client.steps(job) if one.kind == "signal"]
    assert row.result == {"by": "ada"}
    assert '{"by":"ada"}' in tab.page.inner_text("table.steps")
    assert tab.page.get_by_role("button", name="Send signal").count() == 0
    assert shop.done()[0] == ("web:operator", "signal")
    assert tab.troubles == []
