"""llms.txt and llms-full.txt: the documentation for programs that read text, such as language models.

See https://llmstxt.org. `llms.txt` lists the pages with their first sentences, `llms-full.txt` holds the pages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

#: Reports of benchmarks, and pages for people who work on Relet itself.
LEFT_OUT = ("Internals",)
FENCED = re.compile(r"^```.*?^```$|^<!--.*?-->$", re.M | re.S)
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")


def pages_in(navigation: list[Any], section: str = "") -> Iterator[tuple[str, str, str]]:
    """Section, title and path of each page, from the navigation of MkDocs."""
    for each in navigation:
        for title, value in each.items() if isinstance(each, dict) else [("", each)]:
            if isinstance(value, list):
                yield from pages_in(value, section or title)
            elif section not in LEFT_OUT:
                yield section, title, value


def first_sentence(text: str) -> str:
    """The first sentence of the first paragraph under the title."""
    paragraphs = [part.strip() for part in FENCED.sub("", text).split("\n\n")]
    plain = next((part for part in paragraphs if part and part[0] not in "#|-!"), "")
    return re.split(r"(?<=[.:])\s", " ".join(LINK.sub(r"\1", plain).split()))[0].rstrip(":")


def llms_txt(navigation: list[Any], docs: Path) -> str:
    """A title, a summary, and under each section its pages with their first sentences."""
    lines = ["# Relet", "", f"> {first_sentence((docs / 'index.md').read_text())} {INSTALL}"]
    section = ""
    for heading, title, path in pages_in(navigation):
        if heading != section:
            section = heading
            lines += ["", f"## {section}", ""]
        sentence = first_sentence((docs / path).read_text())
        lines.append(f"- [{title}]({path})" + (f": {sentence}" if sentence else ""))
    return "\n".join(lines) + "\n"


INSTALL = (
    "Jobs are rows in SQLite or PostgreSQL; `App` registers tasks, `task.enqueue(...)` stores a job, "
    "`relet worker module:app` runs jobs. All pages in one file: llms-full.txt."
)


def llms_full(navigation: list[Any], docs: Path) -> str:
    """All pages, each below the path of its file."""
    pages = [(path, (docs / path).read_text()) for _, _, path in pages_in(navigation)]
    return "\n".join(f"<!-- {path} -->\n\n{text.strip()}\n" for path, text in pages)
