"""Statements: how their texts are split and rendered for each driver, and the rules for all of them."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from relet._store import flows
from relet._store.fragments import with_fragments
from relet._store.query import MOMENTS, Style, as_json, read, render, source, split, texts, values, write
from tests.store.statement_files import statement_files

FILES = statement_files()
NAMES = sorted({name.partition(".")[0] for name in FILES})
FLOWS = "".join(file.read_text() for file in files(flows).iterdir() if file.name.endswith(".py"))
CALL = re.compile(r'"([a-z]+/[a-z_]+)"')
# A statement of a flow must exist for every store; only PostgreSQL has replicas.
IN_BOTH_DIALECTS = sorted(name for name in set(CALL.findall(FLOWS)) if not name.startswith("replica/"))
STYLES: list[Style] = ["pyformat", "dollar", "named", "alchemy"]


# splitting


@pytest.mark.parametrize(
    ("script", "statements"),
    [
        ("select 1", ["select 1"]),
        ("select 1;", ["select 1"]),
        ("select 1; select 2", ["select 1", "select 2"]),
        ("  \n;; ;\n", []),
        ("select ';'; select 2", ["select ';'", "select 2"]),
        ("select 'it''s; so'; select 2", ["select 'it''s; so'", "select 2"]),
        ('select ";"; select 2', ['select ";"', "select 2"]),
        ("select $$ a; b $$; select 2", ["select $$ a; b $$", "select 2"]),
        ("select $it$ $$;' $it$; select 2", ["select $it$ $$;' $it$", "select 2"]),
        ("-- first; not cut\nselect 1", ["select 1"]),
        ("select 1 -- it's; a comment\n, 2; select 3", ["select 1 \n, 2", "select 3"]),
        ("select /* ; ' \n */ 1; select 2", ["select  1", "select 2"]),
        ("select '-- no comment'; select '/* none */'", ["select '-- no comment'", "select '/* none */'"]),
        ("select '\n;\n'", ["select '\n;\n'"]),
    ],
)
def test_a_script_is_cut_at_semicolons_that_mean_it(script: str, statements: list[str]) -> None:
    assert split(script) == statements


# rendering


@pytest.mark.parametrize(
    ("text", "pyformat", "dollar", "named", "alchemy"),
    [
        (
            "select :a, :b_c, :a",
            "select %(a)s, %(b_c)s, %(a)s",
            "select $1, $2, $1",
            "select :a, :b_c, :a",
            "select :a, :b_c, :a",
        ),
        (":a::text", "%(a)s::text", "$1::text", ":a::text", r":a\:\:text"),
        ("':a'", "':a'", "':a'", "':a'", r"'\:a'"),
        ('":a"', '":a"', '":a"', '":a"', r'"\:a"'),
        ("$$:a$$", "$$:a$$", "$$:a$$", "$$:a$$", r"$$\:a$$"),
        ("5 % 2", "5 %% 2", "5 % 2", "5 % 2", "5 % 2"),
        ("like '%x%'", "like '%%x%%'", "like '%x%'", "like '%x%'", "like '%x%'"),
        ("'it''s :a' :b", "'it''s :a' %(b)s", "'it''s :a' $1", "'it''s :a' :b", r"'it''s \:a' :b"),
        ("a[1:2]", "a[1:2]", "a[1:2]", "a[1:2]", "a[1:2]"),
        ("/* :a */ :b", "/* :a */ %(b)s", "/* :a */ $1", "/* :a */ :b", r"/* \:a */ :b"),
    ],
)
def test_parameters_are_rendered_for_each_driver(
    text: str, pyformat: str, dollar: str, named: str, alchemy: str
) -> None:
    assert [render(text, style).sql for style in STYLES] == [pyformat, dollar, named, alchemy]


def test_values_go_where_the_text_wants_them() -> None:
    text = render("select :b, :a, :b", "dollar")
    assert text.names == ("b", "a")
    assert text.numbered({"a": 1, "b": 2, "c": 3}) == [2, 1]
    assert text.named({"a": 1, "b": 2, "c": 3}) == {"b": 2, "a": 1}
    with pytest.raises(KeyError):
        text.named({"a": 1})


def test_an_alchemy_text_means_the_statement_as_written() -> None:
    sqlalchemy = pytest.importorskip("sqlalchemy")
    sql = "select :a::text, ':b', x::int[] from t where u = :c -- d"
    rendered = render(split(sql)[0], "alchemy")
    compiled = sqlalchemy.text(rendered.sql).compile()
    assert sorted(compiled.params) == ["a", "c"]
    assert str(compiled) == "select :a::text, ':b', x::int[] from t where u = :c"


def test_the_schema_and_the_clock_are_put_in_before_anything_is_cut() -> None:
    for name in NAMES:
        for dialect in ("postgres", "sqlite"):
            if f"{name}.{dialect}.sql" in FILES:
                both = [texts(name, dialect, "named", '"my_schema"', has_clock) for has_clock in (False, True)]
                for text in (*both[0], *both[1]):
                    assert "{" not in re.sub("'[^']*'", "", text.sql)
    assert any('"my_schema"' in text.sql for text in texts("claim/claim", "postgres", "named", '"my_schema"'))


def test_a_batch_is_one_parameter_of_json() -> None:
    assert as_json([{"a": 1e22, "b": "é\x00", "c": None}]) == '[{"a":1e22,"b":"é\\u0000","c":null}]'


def test_a_read_is_distinguished_from_a_write() -> None:
    assert write("claim/claim", n=1).writes
    assert not read("inspect/get", n=1).writes


# every file


def test_a_statement_has_a_twin_with_the_same_parameters() -> None:
    for name in IN_BOTH_DIALECTS:
        assert {f"{name}.postgres.sql", f"{name}.sqlite.sql"} <= set(FILES)
        postgres, sqlite = _parameters(name, "postgres"), _parameters(name, "sqlite")
        assert sqlite <= postgres, f"{name}: what SQLite wants, PostgreSQL gets too"


def test_every_parameter_is_a_plain_word() -> None:
    """The tokenizer knows letters and underscores: a digit in a name would be cut off in silence."""
    for name in FILES:
        stem, dialect, _ = name.split(".")
        text = " ".join(split(source(stem, dialect)))
        bare = re.sub(r"'(?:[^']|'')*'|\"[^\"]*\"|::", " ", text)
        for found in re.findall(r":(\w+)", bare):
            assert re.fullmatch("[a-z_]+", found), (name, found)


def test_on_postgres_every_parameter_is_cast() -> None:
    """So that no driver has to guess, and no codec of a caller's can step in."""
    for name in [name for name in FILES if name.endswith(".postgres.sql")]:
        (text,) = texts(name.partition(".")[0], "postgres", "named", '"s"', has_clock=True)
        for found in re.finditer(r"(?<!:):[a-z_]+(.{0,2})", re.sub(r"'(?:[^']|'')*'", "''", text.sql)):
            assert found[1] == "::", (name, found[0])


def test_sqlite_texts_hold_no_casts_of_postgres() -> None:
    for name in [name for name in FILES if name.endswith(".sqlite.sql")]:
        assert "::" not in source(name.partition(".")[0], "sqlite"), name


def test_a_file_begins_with_a_comment() -> None:
    for name in FILES:
        stem, dialect, _ = name.split(".")
        assert source(stem, dialect).startswith("-- "), name


def test_returning_lists_its_columns() -> None:
    for name in FILES:
        stem, dialect, _ = name.split(".")
        assert not re.search(r"returning\s+\*", source(stem, dialect), re.I), name


def test_every_file_is_used_and_every_use_has_its_file() -> None:
    more = ("postgres.py", "sqlite.py", "adapters/drivers.py", "doctor/postgres.py", "doctor/sqlite.py")
    code = FLOWS + "".join((files("relet._store") / name).read_text() for name in more)
    used = set(CALL.findall(code))
    assert used - set(NAMES) == set()
    assert set(NAMES) - used == set()


def test_the_time_is_the_databases_unless_the_store_has_a_clock() -> None:
    for name in FILES:
        stem, dialect, _ = name.split(".")
        assert ":now" not in source(stem, dialect), f"{name}: flows do not know the time"
        assert "now" not in {word for text in texts(stem, dialect, "named", "s") for word in text.names}, name
        whole = with_fragments(source(stem, dialect), dialect)  # type: ignore[arg-type]
        timed = any(word in whole for word in ("{now}", "{given}"))
        names = {word for text in texts(stem, dialect, "named", "s", True) for word in text.names}
        assert ("now" in names) == timed, name


def test_without_a_clock_a_moment_is_a_plain_function_that_distributed_engines_accept() -> None:
    assert MOMENTS["postgres", False]["{now}"] == "statement_timestamp()"
    assert (
        texts("inspect/clock", "postgres", "named", "s")[0].sql
        == "select extract(epoch from statement_timestamp())::float8"
    )
    assert texts("inspect/clock", "sqlite", "named", "s", True)[0].sql == "select :now"


def test_a_clock_is_read_for_each_statement() -> None:
    ticks = iter([1.5, 2.5])
    query = read("inspect/clock", other=1)
    assert values(query, None) is query.params
    assert [values(query, lambda: next(ticks)) for _ in range(2)] == [
        {"other": 1, "now": 1.5},
        {"other": 1, "now": 2.5},
    ]


def _parameters(name: str, dialect: str) -> set[str]:
    return {word for text in texts(name, dialect, "named", "s") for word in text.names}
