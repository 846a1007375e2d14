"""The documentation site works without a network. `./dev docs` builds it; here is what its hooks do to a page."""

from __future__ import annotations

from tools.docs_site import MERMAID, other_hosts, plain_fences, with_mermaid

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
