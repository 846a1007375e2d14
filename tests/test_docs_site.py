"""The documentation site works without a network. `./dev docs` builds it; these tests are about its hooks."""

from __future__ import annotations

from typing import Any

import yaml

import relet
from tests.pages import DOCS, ROOT
from tools.api_reference import entry
from tools.docs_site import MERMAID, other_hosts, plain_fences, with_mermaid
from tools.llms import first_sentence, llms_full, llms_txt

DIAGRAM = '<pre class="mermaid"><code>stateDiagram-v2</code></pre><script src="theme.js"></script>'


def test_a_page_with_a_diagram_loads_the_copy_of_mermaid_in_the_site_before_the_theme() -> None:
    page = with_mermaid(DIAGRAM, "guides/order.html")
    assert '<script src="../assets/javascripts/mermaid.js"></script><script src="theme.js">' in page
    assert '<script src="assets/javascripts/mermaid.js"></script>' in with_mermaid(DIAGRAM, "concepts.html")


def test_a_page_without_a_diagram_does_not_load_mermaid() -> None:
    page = '<p>no diagram</p><script src="theme.js"></script>'
    assert with_mermaid(page, "index.html") == page


def test_everything_that_a_page_would_load_from_another_host_is_found() -> None:
    page = """
        <script src="https://a.example/x.js"></script> <img alt="" src='//b.example/x.png'>
        <link rel="stylesheet" href="https://c.example/x.css"> <link href="https://d.example" rel=preconnect>
        <a href="https://e.example">a link</a> <link rel="canonical" href="https://f.example/">
        <script src="../assets/x.js"></script> <img alt="" src="images/x.png">
    """
    assert [address.split("/")[2] for address in other_hosts(page)] == [f"{name}.example" for name in "abcd"]


def test_the_theme_does_not_see_the_words_that_are_for_tests() -> None:
    assert plain_fences("```python no-run\nx = 1\n```\n") == "```python\nx = 1\n```\n"


def test_a_script_that_was_changed_is_not_used() -> None:
    assert not MERMAID.is_genuine(b"alert(1)")


def navigation() -> list[Any]:
    """That of mkdocs.yml, whose other parts have tags of Python."""
    text = (ROOT / "mkdocs.yml").read_text()
    found: list[Any] = yaml.safe_load(text[text.index("\nnav:") :])["nav"]
    return found


def test_llms_txt_lists_every_guide_with_its_first_sentence() -> None:
    text = llms_txt(navigation(), DOCS)
    for page in sorted((DOCS / "guides").glob("*.md")):
        assert f"](guides/{page.name})" in text
    assert "- [Examples](examples.md): The directory `examples` of the repository has six programs" in text
    assert "\n## Guides\n" in text
    assert "decisions/" not in text


def test_llms_full_holds_the_pages() -> None:
    text = llms_full(navigation(), DOCS)
    assert (DOCS / "quickstart.md").read_text().strip() in text
    assert "<!-- guides/retries.md -->" in text


def test_the_first_sentence_is_that_under_the_title() -> None:
    assert first_sentence("# T\n\n```python\nx = 1.\n```\n\nSee [a page](x.md): it\nis good. More.") == "See a page"


def test_a_signature_and_an_example_of_a_guide_are_on_the_page_of_signatures() -> None:
    text = entry(r"\bclient", relet.Client, "cancel")
    assert "cancel(job: AnyJob, /, *, chain: bool = False)" in " ".join(text.split())
    assert "client.cancel(" in text
    assert "\nFrom [" in text
