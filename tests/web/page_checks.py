"""Detects errors of a page in a browser, and accessibility violations."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import axe_core_python
from playwright.sync_api import ConsoleMessage, Dialog, Page, Request, Response, ViewportSize

from tests.plugin.selection import rounds

DESKTOP, PHONE = ViewportSize(width=1280, height=800), ViewportSize(width=390, height=844)


class PageErrors:
    """Records errors, dialogs, failed responses and requests to other hosts of one page, from now on."""

    def __init__(self, page: Page, base: str) -> None:
        self.page, self.troubles = page, list[str]()
        self._home = urlsplit(base).netloc
        page.add_init_script(
            "document.addEventListener('securitypolicyviolation',"
            "(event) => console.error(`policy: ${event.violatedDirective} ${event.blockedURI} ${event.sample}`))"
        )
        page.on("console", self._console)
        page.on("pageerror", lambda error: self._note(f"error: {error}"))
        page.on("request", self._request)
        page.on("requestfailed", self._failed)
        page.on("response", self._response)
        page.on("dialog", self._dialog)

    def _note(self, what: str) -> None:
        self.troubles.append(f"{urlsplit(self.page.url).path} {what}"[:400])

    def _dialog(self, dialog: Dialog) -> None:
        self._note(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self._note(f"console {message.type}: {message.text}")

    def _request(self, request: Request) -> None:
        if urlsplit(request.url).netloc != self._home and not request.url.startswith("data:"):
            self._note(f"asks elsewhere: {request.url}")

    def _failed(self, request: Request) -> None:
        if request.failure != "net::ERR_ABORTED":  # by going on to another page
            self._note(f"failed: {request.url} {request.failure}")

    def _response(self, response: Response) -> None:
        if response.status >= 400:
            self._note(f"{response.status}: {response.url}")


def overhang(page: Page) -> int:
    """Pixels by which the page is wider than its window: then it scrolls sideways."""
    return int(page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))


@cache
def _axe() -> str:
    return (Path(axe_core_python.__file__).parent / "axe.min.js").read_text()


# Rows that differ in text only are checked once: a long list would take seconds.
_ONE_OF_EACH = """() => {
  for (const list of document.querySelectorAll("tbody, .lines")) {
    const seen = new Set();
    for (const row of [...list.children]) {
      const shape = [...row.querySelectorAll("*")].map((one) => `${one.tagName} ${one.getAttribute("class")}`).join();
      if (seen.has(shape)) row.remove(); else seen.add(shape);
    }
  }
}"""
_RUN = "(only) => axe.run(document, {resultTypes: ['violations'], preload: false, ...(only && {runOnly: only})})"
#: Both sizes and both colour schemes; then the colours once more, each scheme in the other size.
_Look = tuple[ViewportSize, Literal["light", "dark"], list[str] | None]
_LOOKS: tuple[_Look, ...] = (
    (DESKTOP, "light", None), (PHONE, "dark", None),
    (DESKTOP, "dark", ["color-contrast"]), (PHONE, "light", ["color-contrast"]),
)  # fmt: skip
_FAST_LOOKS: tuple[_Look, ...] = ((DESKTOP, "light", None), (PHONE, "dark", ["color-contrast"]))


def barriers(page: Page) -> list[str]:
    """Serious and critical violations that axe-core finds, on desktop and phone, light and dark."""
    page.keyboard.press("l")  # no live updates during the check
    page.evaluate(_axe())
    page.evaluate(_ONE_OF_EACH)
    found = []
    for size, scheme, only in _LOOKS if rounds(0, all=1) else _FAST_LOOKS:
        page.set_viewport_size(size)
        page.emulate_media(color_scheme=scheme)
        for one in page.evaluate(_RUN, only)["violations"]:
            if one["impact"] in ("serious", "critical"):
                where = "; ".join(f"{node['html'][:120]} {node['any'][:1]}"[:300] for node in one["nodes"][:3])
                found.append(f"{size['width']} {scheme} {one['id']}: {where}")
    return found
