"""Text for people: durations, sizes, and words from jobs that must not harm a terminal or a log."""

from __future__ import annotations

LONGEST_LINE = 300


def one_line(text: str, longest: int = LONGEST_LINE) -> str:
    """The first line, cut if it is long, without characters that a terminal obeys."""
    first = text.partition("\n")[0]
    short = first if len(first) <= longest else f"{first[:longest]}..."
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in short)
