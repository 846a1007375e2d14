"""Live views by server-sent events: what a page shows, sent again when it has changed.

However many pages are open, one task looks on behalf of all of them: each distinct view is made once, and after every
round it rests for many times as long as the round took. So live pages cost a small, fixed share of a processor's time,
and the more of them are open the more slowly they are refreshed.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field

log = logging.getLogger("relet.web")

SHARE = 0.02  # of the time is spent looking
AT_MOST_EVERY = 1.0
AT_LEAST_EVERY = 60.0  # beside the round itself: a store that was slow once is not left alone for hours
KEEP_ALIVE = 15.0
MOST_STREAMS = 200
MOST_OF_ONE = 100  # streams of one token: nobody shuts the others out
LONGEST = 3600.0  # seconds: then the browser comes again, and shows that it still may

_LINE_END = re.compile(r"\r\n|\r|\n")  # what ends a line of an event, and nothing else that Python takes for one

Look = Callable[[], Awaitable[str]]
News = asyncio.Queue[str]


class TooMany(Exception):
    """There are as many live pages as are allowed."""


@dataclass(eq=False)
class _Watched:
    """One distinct view, and those who see it."""

    look: Look
    who: str
    streams: set[News] = field(default_factory=set)
    last: str | None = None


class Live:
    """All live views of one event loop."""

    def __init__(self) -> None:
        self._watched: dict[object, _Watched] = {}
        self._task: asyncio.Task[None] | None = None

    def stream(self, who: str, key: object, look: Look, name: str) -> AsyncGenerator[str, None]:
        """Events of this name for one page of somebody's. `key` tells which of their pages show the same."""
        if self._open() >= MOST_STREAMS or self._open(who) >= MOST_OF_ONE:
            raise TooMany
        return self._events(who, (who, key), look, name)

    def _open(self, who: str | None = None) -> int:
        """How many streams there are, of one or of all."""
        return sum(len(watched.streams) for watched in self._watched.values() if who in (None, watched.who))

    async def _events(self, who: str, key: object, look: Look, name: str) -> AsyncGenerator[str, None]:
        news: News = asyncio.Queue(maxsize=1)
        watched = self._watched.setdefault(key, _Watched(look, who))
        watched.streams.add(news)
        if watched.last is not None:
            _put(news, watched.last)  # the page may be older than that
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._go_on())
        until = time.monotonic() + LONGEST
        try:
            yield "retry: 3000\n\n"
            while time.monotonic() < until:
                try:
                    async with asyncio.timeout(KEEP_ALIVE):
                        text = await news.get()
                except TimeoutError:
                    yield ": still here\n\n"
                else:
                    lines = "".join(f"data: {line}\n" for line in _LINE_END.split(text))
                    yield f"event: {name}\n{lines}\n"
        finally:
            watched.streams.discard(news)
            if not watched.streams and self._watched.get(key) is watched:
                del self._watched[key]

    async def _go_on(self) -> None:
        """Round after round, while anybody looks."""
        while self._watched:
            began = time.monotonic()
            for watched in list(self._watched.values()):
                await self._refresh(watched)
            took = time.monotonic() - began
            await asyncio.sleep(min(max(took * (1 / SHARE - 1), AT_MOST_EVERY), AT_LEAST_EVERY))

    async def _refresh(self, watched: _Watched) -> None:
        try:
            made = await watched.look()
        except Exception as error:  # a store that is away, say; the next round will tell
            log.info("a live view could not be refreshed: %s", error)
            return
        if made != watched.last:
            watched.last = made
            for news in watched.streams:
                _put(news, made)


def _put(news: News, made: str) -> None:
    """The latest is what counts: one that was not fetched yet is replaced."""
    if news.full():
        news.get_nowait()
    news.put_nowait(made)
