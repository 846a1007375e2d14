"""Job ids on the command line: whole ones, or their ends, as the dashboard and narrow tables show them."""

from __future__ import annotations

import re

from .._client.client import Client
from .load_app import CommandError

UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", re.ASCII)
END = re.compile(r"[0-9a-f]{4,12}", re.ASCII)
MAX_SEARCHED = 20_000  # jobs, newest first
PAGE = 1000


def is_id(word: str) -> bool:
    """Whether a word is an id, or can be the end of one."""
    return bool(UUID.fullmatch(word) or END.fullmatch(word))


def find_ids(client: Client, words: list[str]) -> list[str]:
    """Replace the ends of ids by whole ids. Other words stay as they are: the verb reports them."""
    ends = {word for word in words if END.fullmatch(word)}
    found = _search(client, ends) if ends else {}
    return [found.get(word, word) for word in words]


def _search(client: Client, ends: set[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    cursor: str | None = None
    for _ in range(MAX_SEARCHED // PAGE):
        page = client.jobs(limit=PAGE, cursor=cursor)
        for job in page.jobs:
            for end in ends:
                if job.id.endswith(end):
                    if end in found:
                        raise CommandError(f"Two jobs end in {end}: {job.id} and {found[end]}. Use a longer part.")
                    found[end] = job.id
        cursor = page.cursor
        if cursor is None:
            break
    missing = sorted(ends - found.keys())
    if missing:
        where = f"the newest {MAX_SEARCHED:,} jobs" if cursor else "any job"
        raise CommandError(f"No id of {where} ends in {missing[0]}. Use the whole id.")
    return found
