"""Every view in a real browser: it loads, fits, can be read by everybody, and stays harmless whatever it shows."""

from __future__ import annotations

import pytest

pytest.importorskip("playwright")
pytest.importorskip("starlette")
pytest.importorskip("axe_core_python")

from relet import App
from tests.plugin.selection import rounds
from tests.web import hostile, page_checks
from tests.web.browser import READ_TOKEN
from tests.web.driven.conftest import Opens, Tab
from tests.web.driven.views import EVERYTHING, VIEWS

ALIKE = {"overview of a month", "pending job"}  # a similar page is checked instead
#: Of the same template as another. The tests below visit them too, but for a check of accessibility.
SAME_TEMPLATE = {
    "no such jobs", "failed jobs", "running job", "succeeded job", "confirm delete", "confirm bulk", "confirm enqueue",
}  # fmt: skip
#: Tables and forms made of the same parts as those of other views. The tests below visit them, too.
SAME_PARTS = {
    "targets", "target", "workers", "schedules", "failures", "audit", "confirm cancel", "confirm enqueue a task",
}  # fmt: skip


@pytest.mark.long(*ALIKE, *SAME_TEMPLATE, *SAME_PARTS)
@pytest.mark.parametrize("name", EVERYTHING)
def test_a_view_loads_without_errors_fits_and_is_accessible(name: str, shop: App, operator: Tab) -> None:
    address, words = EVERYTHING[name]
    operator.go(address(shop.client))
    assert words in operator.page.inner_text("#main")
    assert operator.troubles == []
    for size in (page_checks.PHONE, page_checks.DESKTOP):
        operator.page.set_viewport_size(size)
        assert page_checks.overhang(operator.page) == 0, "the page scrolls sideways"
    if name not in ALIKE:
        assert page_checks.barriers(operator.page) == []


@pytest.mark.long
def test_axe_finds_nothing_serious_in_the_sign_in(shop_base: str, opens: Opens) -> None:
    tab = opens(shop_base, token=None)
    tab.go("/")
    assert page_checks.barriers(tab.page) == []
    tab.page.fill("#token", "wrong")
    tab.page.click("button")
    assert page_checks.barriers(tab.page) == []


@pytest.mark.long
def test_axe_finds_nothing_serious_in_dialogs(shop: App, operator: Tab) -> None:
    tab = operator
    tab.go(EVERYTHING["failed job"][0](shop.client))
    tab.page.keyboard.press("?")
    assert page_checks.barriers(tab.page) == []
    tab.page.keyboard.press("Escape")
    tab.page.get_by_role("button", name="Cancel", exact=True).click()
    tab.page.wait_for_selector("#confirm[open]")
    assert page_checks.barriers(tab.page) == []


@pytest.mark.long
def test_the_theme_stays_switched(shop_base: str, opens: Opens) -> None:
    tab = opens(shop_base)
    colour = "getComputedStyle(document.body).backgroundColor"
    tab.go("/queues")
    light = tab.page.evaluate(colour)
    tab.page.click("[data-theme-switch]")
    dark = tab.page.evaluate(colour)
    tab.go("/audit")
    assert light != dark == tab.page.evaluate(colour)


@pytest.mark.long
def test_every_view_can_be_read_without_javascript_and_offers_no_action_to_a_reader(
    shop: App, shop_base: str, opens: Opens
) -> None:
    tab = opens(shop_base, READ_TOKEN, script=False)
    for address, words in VIEWS.values():
        tab.go(address(shop.client))
        assert tab.page.locator("h1").is_visible()
        assert words in tab.page.inner_text("#main") or words == "With all"
        for query in ("a[data-confirm]", "[data-confirm] button", "[method=post]", "td.check", "[href*='/confirm/']"):
            assert tab.page.locator(f"#main {query}").count() == 0, f"{query} at {tab.page.url}"
        assert tab.page.locator("[data-live-switch]:visible, [data-help]:visible").count() == 0, "these need a script"
    assert tab.troubles == []


def test_a_reader_who_posts_an_action_is_refused(shop: App, shop_base: str, opens: Opens) -> None:
    tab = opens(shop_base, READ_TOKEN)
    tab.go("/queues")
    refused = tab.page.evaluate(
        """async () => {
          const body = new URLSearchParams({queue: "billing", csrf: document.querySelector("[name=csrf]").value});
          const [act, ask] = [await fetch("/act/pause-queue", {method: "POST", body}), await fetch("/confirm/enqueue")];
          return [act.status, ask.status];
        }"""
    )
    assert refused == [403, 403]
    assert not next(one for one in shop.client.queues() if one.queue == "billing").paused


_LIVE_WIRES = """() => [...document.querySelectorAll("*")].flatMap((one) =>
  [...one.attributes].filter(({name, value}) => name.startsWith("on") ||
      (/^(href|src|action|formaction|xlink:href)$/.test(name) && !/^(\\/|#|http:\\/\\/127\\.)/.test(value)))
    .map(({name, value}) => `${one.tagName} ${name}=${value.slice(0, 60)}`))
  .concat([...document.querySelectorAll("main script, main img, main iframe")].map((one) => one.outerHTML))"""


def test_no_text_of_a_job_is_ever_run_or_asked_for(hostile_shop: App, hostile_base: str, opens: Opens) -> None:
    tab = opens(hostile_base)
    marked = 0
    left_out = ALIKE if rounds(0, all=1) else ALIKE | SAME_TEMPLATE
    for name, (address, _) in EVERYTHING.items():
        if name in left_out:
            continue
        tab.go(address(hostile_shop.client))
        assert tab.page.evaluate(_LIVE_WIRES) == []
        assert page_checks.overhang(tab.page) == 0, name
        marked += hostile.MARK in tab.page.content()
    assert [one for one in tab.troubles if "400" not in one] == [], "names that no client would take are refused"
    assert marked >= rounds(14, all=18), "the attacks are on the pages, as text"
