"""Signing in by the browser; foreign pages in the same browser can do nothing."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import pytest

pytest.importorskip("playwright")
pytest.importorskip("starlette")

from relet import App
from tests.web import browser
from tests.web.browser import READ_TOKEN, TOKEN
from tests.web.driven.conftest import Opens


def test_signing_in_leads_to_the_page_that_was_asked_for(shop_base: str, opens: Opens) -> None:
    tab = opens(shop_base, token=None)
    tab.go("/jobs?state=failed&task=charge")
    tab.page.fill("#token", "not-a-token-of-this-shop")
    tab.page.click("button")
    assert "Invalid token" in tab.page.inner_text("[role=alert]")
    assert tab.context.cookies() == []
    tab.page.fill("#token", TOKEN)
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_url("**/jobs?state=failed&task=charge")
    assert tab.page.inner_text(".who").split() == ["operator", "operator"]


@pytest.mark.long
def test_a_session_is_for_the_server_alone_and_ends_with_signing_out(shop_base: str, opens: Opens) -> None:
    tab = opens(shop_base, READ_TOKEN)
    (cookie,) = tab.context.cookies()
    assert (cookie["name"], cookie["httpOnly"], cookie["sameSite"]) == ("relet_session", True, "Strict")
    tab.go("/")
    assert tab.page.inner_text(".who").split() == ["reader", "read-only"]
    assert tab.page.evaluate("document.cookie") == ""
    tab.page.get_by_role("button", name="Sign out").click()
    tab.page.wait_for_selector("#token")
    assert tab.context.cookies() == []
    assert tab.go("/jobs").status == 401
    tab.page.go_back()
    assert tab.page.locator("#token").count() == 1, "what was shown is not shown again from the browser's memory"


class Trap:
    """A foreign page that sends the browser to the dashboard in every possible way."""

    def __init__(self) -> None:
        self.page = ""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        headers = [(b"content-type", b"text/html")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": self.page.encode()})


FORM = """<!doctype html><form method=post action="{base}/act/pause-queue" enctype="{kind}">
<input name=queue value=billing><input name=back value=/><input name=csrf value="{csrf}"></form>
<script>document.forms[0].submit()</script>"""

SCRIPT = """<!doctype html><script>
  const body = new URLSearchParams({{queue: "billing", csrf: "{csrf}"}});
  const tell = (name, promise) => promise.then(() => name + " went", () => name + " failed");
  window.over = Promise.all([
    tell("post", fetch("{base}/act/pause-queue", {{method: "POST", mode: "no-cors", credentials: "include", body}})),
    tell("json", fetch("{base}/api/queues/billing/pause", {{method: "POST", credentials: "include",
      headers: {{"content-type": "application/json"}}, body: "{{}}"}})),
    tell("read", fetch("{base}/api/queues", {{credentials: "include"}}).then((answer) => answer.text())),
    new Promise((done) => {{ const one = new Image(); one.onerror = () => done("image failed");
      one.onload = () => done("image went"); one.src = "{base}/static/icon.svg"; }}),
  ]);
</script><iframe src="{base}/queues"></iframe>"""


@pytest.mark.long
@pytest.mark.parametrize("host", ["127.0.0.1", browser.ELSEWHERE])
def test_a_page_of_another_site_changes_and_learns_nothing_in_the_same_browser(
    host: str, counter: tuple[App, str], opens: Opens
) -> None:
    """On another port of this host the session goes along: browsers count that as the same site."""
    app, base = counter
    app.tasks["charge"].enqueue("acct-7", 500)
    tab = opens(base)
    tab.go("/queues")
    reader = opens(base, READ_TOKEN)
    reader.go("/")
    csrf = reader.page.locator("[name=csrf]").first.get_attribute("value")  # an attacker may know its own
    trap = Trap()
    with browser.served(trap) as address:
        there = f"http://{host}:{urlsplit(address).port}"
        for kind in ("application/x-www-form-urlencoded", "text/plain"):
            trap.page = FORM.format(base=base, csrf=csrf, kind=kind)
            with tab.page.expect_navigation(url=f"{base}/act/**") as sent:
                tab.page.goto(f"{there}/", wait_until="commit")
            assert sent.value.status in (401, 403)
        trap.page = SCRIPT.format(base=base, csrf=csrf)
        tab.page.goto(f"{there}/")
        outcomes = tab.page.evaluate("window.over")
        assert {"json failed", "read failed", "image failed"} <= {*outcomes}
        assert tab.page.frames[1].url.startswith("chrome-error:"), "a foreign page cannot frame us"
    assert [one.paused for one in app.client.queues() if one.queue == "billing"] == [False]
    assert app.client.audit().entries == []
    tab.go("/queues")
    assert tab.page.inner_text("h1") == "Queues", "the operator is still in"


@pytest.mark.long
def test_a_foreign_name_that_leads_here_is_refused(counter: tuple[App, str], opens: Opens) -> None:
    """Rebinding: for the browser our answers would be of the foreign page's own place."""
    app, base = counter
    app.tasks["charge"].enqueue("acct-7", 500)
    tab = opens(base)
    foreign = f"http://{browser.ELSEWHERE}:{urlsplit(base).port}"
    answer = tab.page.goto(f"{foreign}/queues")
    assert answer is not None
    assert answer.status == 421
    assert "is not allowed, only" in tab.page.inner_text("main")
    asked = "fetch('/act/pause-queue', {method: 'POST', body: new URLSearchParams({queue: 'billing'})})"
    assert tab.page.evaluate(f"{asked}.then((answer) => answer.status)") == 421
    assert [one.paused for one in app.client.queues() if one.queue == "billing"] == [False]
