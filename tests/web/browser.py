"""A real server in a thread, and a real browser that is signed in to it."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

TOKEN = "a-token-for-the-browser-tests"
READ_TOKEN = "a-token-of-who-may-only-read"
HOW_TO_GET_ONE = "there is no browser: apt-get install chromium, or name one: RELET_CHROMIUM=/path/to/chromium"
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
ELSEWHERE = "evil.example"  # a foreign name that resolves to this server
OPTIONS = [
    "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--no-first-run", "--force-color-profile=srgb",
    "--in-process-gpu", "--disable-extensions", "--no-proxy-server", f"--host-resolver-rules=MAP {ELSEWHERE} 127.0.0.1",
]  # fmt: skip


def where() -> str | None:
    """The browser's executable, if any: RELET_CHROMIUM, or one on the PATH."""
    configured = os.environ.get("RELET_CHROMIUM")
    return configured or next((found for name in NAMES if (found := shutil.which(name))), None)


@contextmanager
def serving(app: Any) -> Iterator[str]:
    """Serves the web app of an app on a free port; yields its URL."""
    from relet._web import create_app

    with served(create_app(app, operate={"operator": TOKEN}, read={"reader": READ_TOKEN})) as url:
        yield url


@contextmanager
def served(web: Any) -> Iterator[str]:
    """Serves an ASGI app on a free port; yields its URL."""
    import uvicorn

    config = uvicorn.Config(web, host="127.0.0.1", port=0, log_level="critical", ws="none", lifespan="off")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive(), "the server did not start"
            time.sleep(0.01)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        server.force_exit = True  # live pages have no end of their own
        thread.join(10)


@contextmanager
def browsing(fonts: Path | None = None) -> Iterator[Browser]:
    """Chromium. `fonts`: settings for it, if pages must render the same everywhere.

    While it is open, this thread counts as one with a running event loop.
    """
    from playwright.sync_api import sync_playwright

    environment: dict[str, str | float | bool] = dict(os.environ)
    if fonts is not None:
        environment["FONTCONFIG_FILE"] = str(fonts)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=where(), args=OPTIONS, env=environment)
        try:
            yield browser
        finally:
            browser.close()


def come_in(context: BrowserContext, url: str, token: str = TOKEN) -> None:
    """Sign in without the page that asks."""
    answer = context.request.post(f"{url}/login", form={"token": token}, max_redirects=0)
    assert answer.status == 303, answer.text()


def signed_in(browser: Browser, url: str, token: str = TOKEN, **options: Any) -> Page:
    """A page that has signed in."""
    page = browser.new_context(**options).new_page()
    page.goto(f"{url}/")
    page.fill("#token", token)
    page.click("button")
    page.wait_for_selector("main#main")
    return page
