"""Live views by server-sent events: the server sends a page again when its content has changed.

One task refreshes all open pages. It renders each distinct view once a round, and after every round it sleeps for many
times as long as the round took. Live pages therefore cost a small, fixed share of a processor's time: the more pages
are open, the more slowly they are refreshed.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field

log = logging.getLogger("relet.web")

SHARE = 0.02  # of the time is spent rendering
MIN_INTERVAL = 1.0  # seconds between two rounds
MAX_INTERVAL = 60.0  # so that one slow round does not stop updates for hours
KEEP_ALIVE = 15.0
MAX_STREAMS = 200
MAX_STREAMS_PER_TOKEN = 100  # so that one token cannot use up all streams
LONGEST = 3600.0  # seconds: then the browser reconnects and authenticates again

_LINE_END = re.compile(r"\r\n|\r|\n")  # the line ends of an event; str.splitlines() would split at others too

Render = Callable[[], Awaitable[str]]
Updates = asyncio.Queue[str]


class TooMany(Exception):
    """The limit of open live pages is reached."""


@dataclass(eq=False)
class _LiveView:
    """One distinct view, and the streams of the pages that display it."""

    render: Render
    who: str
    streams: set[Updates] = field(default_factory=set)
    last: str | None = None


class Live:
    """All live views of one event loop."""

    def __init__(self) -> None:
        self._views: dict[object, _LiveView] = {}
        self._task: asyncio.Task[None] | None = None

    def stream(self, who: str, key: object, render: Render, name: str) -> AsyncGenerator[str, None]:
        """Events called `name` for one open page of the token `who`. Pages with the same `key` share one rendering."""
        if self._open() >= MAX_STREAMS or self._open(who) >= MAX_STREAMS_PER_TOKEN:
            raise TooMany
        return self._events(who, (who, key), render, name)

    def _open(self, who: str | None = None) -> int:
        """The number of open streams, of one token or of all."""
        return sum(len(view.streams) for view in self._views.values() if who in (None, view.who))

    async def _events(self, who: str, key: object, render: Render, name: str) -> AsyncGenerator[str, None]:
        updates: Updates = asyncio.Queue(maxsize=1)
        view = self._views.setdefault(key, _LiveView(render, who))
        view.streams.add(updates)
        if view.last is not None:
            _put(updates, view.last)  # the page may have been rendered before this
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._refresh_loop())
        until = time.monotonic() + LONGEST
        try:
            yield "retry: 3000\n\n"
            while time.monotonic() < until:
                try:
                    async with asyncio.timeout(KEEP_ALIVE):
                        text = await updates.get()
                except TimeoutError:
                    yield ": still here\n\n"
                else:
                    lines = "".join(f"data: {line}\n" for line in _LINE_END.split(text))
                    yield f"event: {name}\n{lines}\n"
        finally:
            view.streams.discard(updates)
            if not view.streams and self._views.get(key) is view:
                del self._views[key]

    async def _refresh_loop(self) -> None:
        """Refresh all views in rounds, until the last page is closed."""
        while self._views:
            began = time.monotonic()
            for view in list(self._views.values()):
                await self._refresh(view)
            took = time.monotonic() - began
            await asyncio.sleep(min(max(took * (1 / SHARE - 1), MIN_INTERVAL), MAX_INTERVAL))

    async def _refresh(self, view: _LiveView) -> None:
        try:
            text = await view.render()
        except Exception as error:  # the database is unreachable, for example; the next round tries again
            log.info("Could not refresh a live view: %s", error)
            return
        if text != view.last:
            view.last = text
            for updates in view.streams:
                _put(updates, text)


def _put(updates: Updates, text: str) -> None:
    """Queue the latest text. It replaces one that the stream has not sent yet."""
    if updates.full():
        updates.get_nowait()
    updates.put_nowait(text)
