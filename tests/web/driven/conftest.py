"""One browser for these tests, and a fresh context for each: no cookies, nothing cached."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from relet import App
from tests.web import browser, example_data

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

    from tests.web.page_checks import PageErrors


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    """Closed after these tests: until then no other test could run an event loop in this thread."""
    if browser.where() is None:
        pytest.skip(browser.HOW_TO_GET_ONE)
    with browser.browsing() as found:
        yield found


@dataclass
class Tab:
    """An open page, and the problems that were seen on it."""

    page: Page
    context: BrowserContext
    watch: PageErrors
    base: str

    def go(self, address: str) -> Any:
        return self.page.goto(self.base + address)

    @property
    def troubles(self) -> list[str]:
        return self.watch.troubles


Opens = Callable[..., Tab]


@pytest.fixture
def opens(chromium: Browser) -> Iterator[Opens]:
    """Opens a tab in a new context: `token` signs in, `script=False` is a browser without JavaScript."""
    with ExitStack() as stack:

        def opened(base: str, token: str | None = browser.TOKEN, *, script: bool = True) -> Tab:
            return stack.enter_context(_opened(chromium, base, token, script))

        yield opened


@contextmanager
def _opened(chromium: Browser, base: str, token: str | None, script: bool) -> Iterator[Tab]:
    from tests.web.page_checks import DESKTOP, PageErrors

    with chromium.new_context(viewport=DESKTOP, reduced_motion="reduce", java_script_enabled=script) as context:
        context.set_default_timeout(20_000)
        if token is not None:
            browser.come_in(context, base, token)
        page = context.new_page()
        yield Tab(page, context, PageErrors(page, base), base)


@pytest.fixture(scope="package")
def _operator(chromium: Browser, shop_base: str) -> Iterator[Tab]:
    with _opened(chromium, shop_base, browser.TOKEN, True) as tab:
        yield tab


@pytest.fixture
def operator(_operator: Tab) -> Tab:
    """A tab of an operator who changes nothing: shared by all such tests, because opening one takes time."""
    from tests.web.page_checks import DESKTOP

    _operator.watch.troubles.clear()
    _operator.page.set_viewport_size(DESKTOP)
    _operator.page.emulate_media(color_scheme="light")
    return _operator


@pytest.fixture(scope="package")
def shop_base(shop: App, chromium: Browser) -> Iterator[str]:
    """The example shop, served. Tests must not change it."""
    with browser.serving(shop) as base:
        yield base


@pytest.fixture(scope="package")
def hostile_base(hostile_shop: App, chromium: Browser) -> Iterator[str]:
    """The store in which every text is an attack, served."""
    with browser.serving(hostile_shop) as base:
        yield base


@pytest.fixture
def counter(chromium: Browser) -> Iterator[tuple[App, str]]:
    """A served shop that a test may change."""
    app = example_data.shop("sqlite:///:memory:")
    app.client.migrate()
    with browser.serving(app) as base:
        yield app, base
    app.close()
