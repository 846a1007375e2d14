"""Keyboard shortcuts, focus, and pages that change while they are open."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pytest

pytest.importorskip("playwright")
pytest.importorskip("starlette")

from relet import App
from relet._web import sse
from tests.harness import harness_of
from tests.web import browser
from tests.web.driven.conftest import Opens, Tab
from tests.web.driven.views import VIEWS

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Route

SOON = 15_000  # milliseconds
#: A live page rests for 49 times as long as its last refresh took, which on a busy machine is long.
REFRESHED = 1000 * int(sse.MAX_INTERVAL + 30)


_FOCUS = """() => {
  const one = document.activeElement, style = getComputedStyle(one), box = one.getBoundingClientRect();
  const ring = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2 && style.outlineColor;
  return [one.textContent.trim() || one.getAttribute("aria-label") || one.name || one.tagName,
          Boolean(ring) && box.bottom > 0 && box.top < innerHeight];
}"""


def _tabbed(tab: Tab, times: int) -> list[tuple[str, bool]]:
    """The elements that the Tab key reaches, and whether their focus is visible."""
    found = []
    for _ in range(times):
        tab.page.keyboard.press("Tab")
        name, seen = tab.page.evaluate(_FOCUS)
        found.append((name, seen))
    return found


@pytest.mark.long
def test_a_slash_goes_to_the_filter_and_letters_to_pages(operator: Tab) -> None:
    tab = operator
    tab.go("/queues")
    tab.page.keyboard.press("/")
    tab.page.wait_for_url("**/jobs")
    tab.page.keyboard.press("/")
    assert tab.page.evaluate("document.activeElement.name") == "task"
    tab.page.keyboard.type("g/?")
    assert tab.page.input_value("[name=task]") == "g/?", "in a field, letters are letters"
    tab.page.keyboard.press("Control+a")
    tab.page.keyboard.type("charge")
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_url("**/jobs?*task=charge*")
    tab.page.keyboard.press("g")
    tab.page.keyboard.press("w")
    tab.page.wait_for_url("**/workers")
    assert tab.troubles == []


def test_a_question_mark_opens_the_help_and_escape_closes_it(operator: Tab) -> None:
    tab = operator
    tab.go("/")
    tab.page.keyboard.press("?")
    assert "Keyboard shortcuts" in tab.page.inner_text("dialog[open]")
    tab.page.keyboard.press("Escape")
    assert tab.page.locator("dialog[open]").count() == 0


def test_rows_are_gone_through_and_chosen_by_keys(operator: Tab) -> None:
    tab = operator
    tab.go("/jobs?state=failed")
    for key in ("j", "j", "x", "j", "k", "x", "j", "x"):
        tab.page.keyboard.press(key)
    boxes = tab.page.locator("td.check input")
    assert [boxes.nth(n).is_checked() for n in range(3)] == [False, False, True]
    assert tab.page.locator("[data-selected]").inner_text() == "1 selected"


@pytest.mark.long
def test_the_tab_key_reaches_the_content_first_and_every_action_with_a_ring(shop: App, operator: Tab) -> None:
    tab = operator
    tab.go(VIEWS["failed job"][0](shop.client))
    found = _tabbed(tab, 20)
    names = [name for name, _ in found]
    assert names[0] == "Skip to the content"
    assert {"Queues", "Sign out", "Resume", "Cancel", "Delete"} <= {*names}
    assert [name for name, seen in found if not seen] == []
    tab.go(VIEWS["failed job"][0](shop.client))
    _tabbed(tab, 1)
    tab.page.keyboard.press("Enter")
    assert _tabbed(tab, 1)[0][0] == "Resume", "past the navigation"


def test_a_confirmation_takes_the_focus_and_gives_it_back(shop: App, operator: Tab) -> None:
    tab = operator
    tab.go(VIEWS["failed job"][0](shop.client))
    button = tab.page.get_by_role("button", name="Cancel", exact=True)
    button.focus()
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_selector("#confirm[open]")
    for _ in range(4):
        assert tab.page.evaluate("Boolean(document.activeElement.closest('dialog')) || document.activeElement.tagName")
        tab.page.keyboard.press("Tab")
    tab.page.keyboard.press("Escape")
    assert button.evaluate("(one) => one === document.activeElement")


def test_an_open_page_shows_changes_without_a_reload(counter: tuple[App, str], opens: Opens) -> None:
    app, base = counter
    job = app.tasks["charge"].enqueue("acct-7", 500)
    tab = opens(base)
    tab.go(f"/jobs/{job.id}")
    tab.page.evaluate("window.sameDocument = true")
    assert tab.page.locator(".tiles .state").first.inner_text() == "queued"
    app.client.cancel(job)
    tab.page.locator(".tiles .state", has_text="cancelled").wait_for(timeout=REFRESHED)
    assert tab.page.get_by_role("button", name="Cancel", exact=True).count() == 0
    assert tab.page.evaluate("window.sameDocument")
    assert tab.troubles == []


class News:
    """The live views that a tab has been sent."""

    def __init__(self, tab: Tab) -> None:
        self.tab, self.number = tab, 0
        devtools = tab.context.new_cdp_session(tab.page)
        devtools.send("Network.enable")
        devtools.on("Network.eventSourceMessageReceived", self._count)

    def _count(self, _: object) -> None:
        self.number += 1

    def wait(self, number: int) -> None:
        """Until there have been so many, and the page has had time to deal with them."""
        for _ in range(REFRESHED // 100):
            if self.number >= number:
                break
            self.tab.page.wait_for_timeout(100)
        assert self.number >= number, "the news has come"
        self.tab.page.wait_for_timeout(200)


@pytest.mark.long
def test_nothing_is_replaced_while_the_user_types(counter: tuple[App, str], opens: Opens) -> None:
    app, base = counter
    app.tasks["refund"].enqueue("acct-7", "A-1")
    tab = opens(base)
    news = News(tab)
    tab.go("/jobs")
    news.wait(1)
    tab.page.focus("[name=task]")
    tab.page.keyboard.type("char")
    app.tasks["charge"].enqueue("acct-8", 500)
    news.wait(2)
    assert (tab.page.input_value("[name=task]"), tab.page.locator("tbody tr").count()) == ("char", 1)
    tab.page.keyboard.type("ge")
    tab.page.evaluate("document.activeElement.blur()")
    tab.page.locator("tbody tr").nth(1).wait_for(timeout=REFRESHED)
    assert tab.page.input_value("[name=task]") == "charge", "what was typed stays, also when the list is renewed"


@pytest.mark.long
def test_focus_open_details_and_selection_stay_when_the_page_is_renewed(counter: tuple[App, str], opens: Opens) -> None:
    app, base = counter
    jobs = sorted((app.tasks["refund"].enqueue("acct-7", f"A-{n}") for n in range(3)), key=lambda job: job.id)
    tab = opens(base)
    news = News(tab)
    tab.go("/jobs")
    tab.page.locator("summary").click()
    tab.page.keyboard.press("j")
    focused = "document.activeElement.closest('tr') && document.activeElement.getAttribute('href')"
    here = tab.page.evaluate(focused)
    assert here == f"/jobs/{jobs[2].id}"
    news.wait(1)
    app.client.cancel(jobs[0])
    tab.page.locator("tr .state", has_text="cancelled").wait_for(timeout=REFRESHED)
    assert tab.page.evaluate(focused) == here
    assert tab.page.locator("details[open]").count() == 1
    app.tasks["refund"].enqueue("acct-7", "A-9")
    tab.page.locator("tbody tr").nth(3).wait_for(timeout=REFRESHED)
    assert tab.page.evaluate(focused) == here, "a row that comes in above does not put the focus on another job"
    row = "row => [row.querySelector('a').href, row.querySelector('input').value]"
    rows = f"[...document.querySelectorAll('tbody tr')].map({row})"
    assert all(link.endswith(value) for link, value in tab.page.evaluate(rows)), "a box chooses the job of its row"
    tab.page.keyboard.press("x")
    assert tab.page.locator("td.check input:checked").get_attribute("value") == jobs[2].id
    app.client.cancel(jobs[1])
    news.wait(4)
    assert tab.page.locator("tr .state", has_text="cancelled").count() == 1, "while jobs are chosen the list stands"
    tab.page.keyboard.press("x")
    tab.page.locator("tr .state", has_text="cancelled").nth(1).wait_for(timeout=REFRESHED)


@pytest.mark.long
def test_a_page_that_is_not_live_stays_as_it_is(counter: tuple[App, str], opens: Opens) -> None:
    app, base = counter
    job = app.tasks["charge"].enqueue("acct-7", 500)
    tab = opens(base)
    tab.go(f"/jobs/{job.id}")
    tab.page.keyboard.press("l")
    assert tab.page.locator("[data-live-word]").inner_text() == "not live"
    app.client.cancel(job)
    tab.page.wait_for_timeout(1600)
    assert tab.page.locator(".tiles .state").first.inner_text() == "queued"
    tab.page.keyboard.press("l")
    tab.page.locator(".tiles .state", has_text="cancelled").wait_for(timeout=REFRESHED)


@pytest.mark.long
def test_a_page_whose_live_view_was_refused_asks_again(counter: tuple[App, str], opens: Opens) -> None:
    app, base = counter
    job = app.tasks["charge"].enqueue("acct-7", 500)
    tab = opens(base)
    tab.page.clock.install()
    refused: list[str] = []

    def answer(route: Route) -> None:
        if refused:
            route.continue_()
        else:
            refused.append(route.request.url)
            route.fulfill(status=429)

    tab.page.route("**/live?*", answer)
    tab.page.goto(f"{base}/jobs/{job.id}")
    tab.page.locator("[data-live-word]", has_text="reconnecting").wait_for(timeout=SOON)
    app.client.cancel(job)
    tab.page.clock.fast_forward(20_000)
    tab.page.locator(".tiles .state", has_text="cancelled").wait_for(timeout=REFRESHED)
    assert tab.page.locator("[data-live-word]").inner_text() == "live"


@pytest.mark.long
def test_leases_count_down(counter: tuple[App, str], opens: Opens) -> None:
    app, base = counter
    app.tasks["refund"].enqueue("acct-1", "A-1")
    harness_of(app).claim(1, queues=("billing",))
    tab = opens(base)
    tab.go("/jobs?state=running")
    left = "parseInt(document.querySelector('time[data-until]').textContent)"
    first = tab.page.evaluate(left)
    tab.page.wait_for_timeout(1600)
    assert 0 < tab.page.evaluate(left) < first <= 30


def test_a_selection_has_its_actions_in_view_and_a_count(operator: Tab) -> None:
    tab = operator
    tab.go("/jobs?state=failed")
    bar = tab.page.locator(".bulk")
    assert bar.locator(".every").is_visible()
    assert not bar.locator(".chosen").is_visible()
    for index in range(2):
        tab.page.locator("td.check input").nth(index).check()
    assert bar.locator("[data-selected]").inner_text() == "2 selected"
    assert not bar.locator(".every").is_visible()
    box = bar.bounding_box()
    assert box is not None
    assert box["y"] + box["height"] <= 801, "without scrolling to the end of the list"


def test_times_are_local_with_utc_as_the_tooltip(shop: App, shop_base: str, chromium: Browser) -> None:
    job = shop.client.jobs(state="succeeded", limit=1).jobs[0]
    with chromium.new_context(timezone_id="Asia/Kolkata") as context:
        browser.come_in(context, shop_base)
        page = context.new_page()
        page.goto(f"{shop_base}/jobs/{job.id}")
        time = page.locator(".facts time").first
        local = job.created_at.astimezone(ZoneInfo("Asia/Kolkata"))
        assert time.inner_text() == f"{local:%Y-%m-%d %H:%M:%S}"
        assert time.get_attribute("title") == f"{job.created_at:%Y-%m-%d %H:%M:%S} UTC"
        assert page.locator("[data-zone]").inner_text() == "times are Asia/Calcutta" or "Kolkata" in page.inner_text(
            "[data-zone]"
        )
        label = page.locator("svg.timeline text[data-local]").first.text_content() or ""
        assert label.startswith(f"{local:%H:%M}")


@pytest.mark.long
def test_times_in_sentences_are_local_too(shop: App, shop_base: str, chromium: Browser) -> None:
    job = next(one for one in shop.client.jobs(task="fulfil_order", state="pending").jobs if one.awaits)
    with chromium.new_context(timezone_id="Asia/Kolkata") as context:
        browser.come_in(context, shop_base)
        page = context.new_page()
        page.goto(f"{shop_base}/jobs/{job.id}")
        assert page.inner_text(".why").endswith(f"or until {_in_kolkata(job.run_at)}")
        (until,) = [
            one.until for one in shop.client.steps(job) if one.kind == "wait"
        ]  # some milliseconds before run_at
        assert until is not None
        assert _in_kolkata(until) in page.inner_text("table.steps")
        assert "UTC" not in page.inner_text("#main")


def _in_kolkata(moment: datetime) -> str:
    return f"{moment.astimezone(ZoneInfo('Asia/Kolkata')):%Y-%m-%d %H:%M:%S}"


def test_a_chart_shows_the_numbers_below_the_pointer(operator: Tab) -> None:
    tab = operator
    tab.go("/")
    tab.page.locator(".chart").first.locator(".hint").last.hover(force=True)
    readout = tab.page.locator(".readout")
    assert "succeeded" in readout.inner_text()
    tab.page.mouse.move(5, 5)
    assert readout.count() == 0
    assert tab.troubles == []
