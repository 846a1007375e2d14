"""A new filter is added in `_core/filters.py` alone: the rest of a copy of the package is left as it is."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import relet
from tests.homes import Home

PROGRAM = """
import io, sys
from contextlib import redirect_stdout, suppress

import msgspec
from relet import App
from relet._cli.main import main
from relet._web.api import requests
from relet._web.pages import filters

app = App(sys.argv[1], schema=sys.argv[2])
app.client.migrate()

@app.task
def work() -> None: ...

wanted = work.using(group="a").enqueue()
other = work.using(group="b").enqueue()
assert [job.id for job in app.client.jobs(group="a").jobs] == [wanted.id]
assert app.client.count(group="b") == 1

sys.modules["adding"] = sys.modules["__main__"]
out = io.StringIO()
with redirect_stdout(out), suppress(SystemExit):
    main(["jobs", "adding:app", "list", "--group", "a"])
assert wanted.id in out.getvalue() and other.id not in out.getvalue(), out.getvalue()

query = msgspec.convert({"group": "a"}, requests.JobsQuery)
assert query.group == "a"
assert filters.arguments(filters.from_query({"group": "a"})) == {"group": "a"}
assert filters.in_words({"group": "a"}) == "jobs of group a"

assert app.client.bulk("cancel", group="a").done == 1
print("done")
"""

#: Lines of the module, and what a developer would write below each of them.
ADDED = {
    "FILTERS = {\n": '    "group": FilterField("group_key", "equals", "of group", "jobs of this group"),\n',
    "    state: AnyState | Sequence[AnyState] | None\n": "    group: str | None\n",
    "    created_to: float | None = None\n": "    group: str | None = None\n",
}


@pytest.mark.long("memory")
def test_a_filter_is_added_in_one_module(tmp_path: Path, home: Home) -> None:
    source = Path(relet.__file__).parent
    shutil.copytree(source, tmp_path / "relet", ignore=shutil.ignore_patterns("__pycache__"))
    module = tmp_path / "relet" / "_core" / "filters.py"
    text = module.read_text()
    for line, more in ADDED.items():
        assert text.count(line) == 1
        text = text.replace(line, line + more)
    module.write_text(text)
    (tmp_path / "adding.py").write_text(PROGRAM)
    command = [sys.executable, "adding.py", home.url, home.schema]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert ran.stdout == "done\n", ran.stderr
