"""The dashboard over a large store as people meet it: Chromium opens every view and takes the actions."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from relet import App
from tests.web import browser

if TYPE_CHECKING:
    from playwright.sync_api import Page, Response

LOADED = "() => { const [one] = performance.getEntriesByType('navigation'); return one.domComplete - one.startTime; }"
FOR_MACHINES = ("/api/", "/metrics", "/health")


@dataclass
class Deed:
    """An action: where, which button, and whether it came about, as the client sees it."""

    at: str
    button: str
    came: Callable[[], bool]


def run(app: App, addresses: Iterable[str], bound: float) -> None:
    """A line for each view, and for each action: the server's milliseconds, and the browser's."""
    if browser.where() is None:
        print(f"no view was opened in a browser: {browser.HOW_TO_GET_ONE}")
        return
    with browser.browsing() as chromium, browser.serving(app) as url:
        context = chromium.new_context(base_url=url)
        context.set_default_timeout(60_000)
        browser.come_in(context, url)
        page = context.new_page()
        troubles = list[str]()
        page.on("console", lambda said: troubles.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.goto("/")  # the stylesheet and the script are there from now on
        print(f"\n{'in the browser: ms until':72} {'answered':>8} {'loaded':>8}")
        slowest = max(_open(page, one) for one in addresses if not one.startswith(FOR_MACHINES))
        slowest = max(slowest, *(_act(page, deed) for deed in _deeds(app)))
        context.close()
    print(f"the slowest answer to the browser took {slowest:.0f} ms, {slowest / bound:.2f} of the bound")
    if troubles:
        raise RuntimeError(f"the browser complains: {troubles[0]}")


def _open(page: Page, address: str) -> float:
    answer = page.goto(address)
    if answer is None or answer.status != 200:
        raise RuntimeError(f"{address} answered {answer and answer.status} to the browser")
    _show(address, answer, page.evaluate(LOADED))
    return _served(answer)


def _act(page: Page, deed: Deed) -> float:
    """Ask, confirm, and see what has come of it."""
    page.goto(deed.at)
    page.locator(deed.button).first.click()
    box = page.locator("dialog[open] .confirm-box")
    title = box.locator("h1").inner_text()
    begin = time.perf_counter()
    with page.expect_response(lambda answer: "/act/" in answer.url) as sent:
        box.locator(".ends button").click()
    said = page.locator(".flash p").inner_text()
    spent = 1000 * (time.perf_counter() - begin)
    if not deed.came():
        raise RuntimeError(f"{title} The page says {said!r}, and it has not come about")
    _show(f"{title} {said}", sent.value, spent)
    return 0.0 if "/act/bulk" in sent.value.url else _served(sent.value)  # as long as there are many


def _deeds(app: App) -> Iterable[Deed]:
    client = app.client
    cancelled, held = (job.id for job in client.jobs(state="queued", limit=2).jobs)
    failed = client.count(state="failed", error="ConnectionError")

    def is_in(id: str, *states: str) -> Callable[[], bool]:
        return lambda: (found := client.get(id)) is not None and found.state in states

    def mail_paused() -> bool:
        return next(one for one in client.queues() if one.queue == "mail").paused

    def all_resumed() -> bool:
        return failed > 0 and client.count(state="failed", error="ConnectionError") == 0

    mail = "tr:has(a[href$='queue=mail'])"
    yield Deed(f"/jobs/{cancelled}", "text=Cancel", is_in(cancelled, "cancelled"))
    yield Deed(f"/jobs/{held}", "text=Pause", is_in(held, "paused"))
    yield Deed(f"/jobs/{held}", "text=Resume", is_in(held, "pending", "queued"))
    yield Deed("/jobs?state=failed&error=ConnectionError", ".bulk a >> text=Resume", all_resumed)
    yield Deed("/queues", f"{mail} >> text=Pause", mail_paused)
    yield Deed("/queues", f"{mail} >> text=Resume", lambda: not mail_paused())


def _show(what: str, answer: Response, spent: float) -> None:
    print(f"{what[:72]:72} {_served(answer):8.1f} {spent:8.1f}", flush=True)


def _served(answer: Response) -> float:
    return float(answer.headers["server-timing"].partition("dur=")[2])
