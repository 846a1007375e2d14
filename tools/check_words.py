"""Reports identifiers that use words which say nothing about what they name, and phrases that the docs avoid.

Run by `./dev check`. A name should tell a stranger what it holds: `limit`, not `most`; `lease`, not `held`.
"""

from __future__ import annotations

import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
WORDS = {"said", "told", "look", "looks", "place", "places", "most", "shown", "given", "hand", "held", "door", "sight"}
#: Words of the standard library and of other packages, which cannot be renamed.
FOREIGN = {"most_common"}
PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
#: In quotes, "nobody" is the user of that name.
PHRASES = re.compile(r"(?<!\")\b(whoever|nobody|somebody|as ever|of its own|come to|comes to|came to)\b", re.IGNORECASE)
PROSE = (
    *("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "docs/**/*.md", "src/**/*.py", "src/**/*.sql"),
    *("bench/**/*.py", "examples/**/*.py", "tests/**/*.py", "tools/**/*.py"),
)


def identifiers(path: Path) -> Iterator[tuple[int, str]]:
    """The names of a Python file that contain one of the words, with their lines."""
    with tokenize.open(path) as file:
        for token in tokenize.generate_tokens(io.StringIO(file.read()).readline):
            if token.type == tokenize.NAME and token.string not in FOREIGN and words_of(token.string) & WORDS:
                yield token.start[0], token.string


def words_of(name: str) -> set[str]:
    return {part.lower() for part in PARTS.findall(name)}


def phrases(path: Path) -> Iterator[tuple[int, str]]:
    """The phrases of a text that the docs avoid, with their lines."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        yield from ((number, found[0]) for found in PHRASES.finditer(line))


def main() -> int:
    problems = [
        f"{path}:{line}: {name}" for path in sorted(ROOT.glob("src/**/*.py")) for line, name in identifiers(path)
    ]
    texts = sorted({path for pattern in PROSE for path in ROOT.glob(pattern)} - {Path(__file__)})
    problems += [f'{path}:{line}: "{phrase}"' for path in texts for line, phrase in phrases(path)]
    print(*(problem.removeprefix(f"{ROOT}/") for problem in problems), sep="\n")
    print(f"{len(texts)} texts, {len(problems)} words to replace")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
