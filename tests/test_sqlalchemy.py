"""URLs of SQLAlchemy, and Alembic's autogenerate beside the tables of Relet."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Column, Connection, Engine, Integer, MetaData, Table, create_engine, make_url, text
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from relet import App, InvalidInput
from relet._store.urls import without_driver
from relet.contrib.alembic import include_name, include_object, name_filter, object_filter
from relet.contrib.sqlalchemy import database_url
from tests.conftest import PG_KINDS, SERVERS


def engine_of(url: str) -> Engine:
    return create_engine(url.replace("postgresql:", "postgresql+psycopg:"), poolclass=NullPool)


@pytest.fixture(params=["sqlite", *PG_KINDS])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """The URL of a new, empty database."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/shop.db"
    else:
        with request.config.stash[SERVERS].get(request.param).fresh_database() as url:
            yield url


# URLs


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgresql+psycopg://ada:s%2Fx@db:5433/shop", "postgresql://ada:s%2Fx@db:5433/shop"),
        (
            "postgresql+asyncpg://db/shop?ssl=require&timeout=5",
            "postgresql://db/shop?sslmode=require&connect_timeout=5",
        ),
        ("postgresql+asyncpg://db/shop?prepared_statement_cache_size=0", "postgresql://db/shop"),
        ("postgresql+asyncpg://ada:a?b@db/shop", "postgresql://ada:a?b@db/shop"),
        ("postgresql+psycopg2://db/shop?sslmode=require", "postgresql://db/shop?sslmode=require"),
        ("postgres+psycopg://db/shop", "postgres://db/shop"),
        ("sqlite+aiosqlite:///shop.db", "sqlite:///shop.db"),
        ("sqlite+pysqlite:////var/shop.db", "sqlite:////var/shop.db"),
        ("postgresql://db/shop?ssl=require", "postgresql://db/shop?ssl=require"),
        ("mysql+pymysql://db/shop", "mysql+pymysql://db/shop"),
    ],
)
def test_urls_of_sqlalchemy_lose_their_driver(url: str, expected: str) -> None:
    assert without_driver(url) == expected


@pytest.mark.parametrize("driver", ["psycopg", "asyncpg", "psycopg2", "pysqlite", "aiosqlite"])
def test_a_url_with_a_driver_names_the_same_database(driver: str, database: str) -> None:
    if ("sqlite" in driver) != database.startswith("sqlite"):
        pytest.skip("a driver of the other database")
    scheme = database.partition("://")[0]
    with App(database) as plain, App(database.replace(scheme, f"{scheme}+{driver}", 1)) as app:
        app.client.migrate()
        assert app.client.where == plain.client.where

        @app.task
        def work() -> None: ...

        assert plain.client.get(work.enqueue().id) is not None


def test_commands_understand_a_url_with_a_driver(database: str, tmp_path: Path) -> None:
    scheme = database.partition("://")[0]
    driver = "aiosqlite" if scheme == "sqlite" else "asyncpg"
    url = database.replace(scheme, f"{scheme}+{driver}", 1)
    (tmp_path / "shop.py").write_text(f"from relet import App\napp = App({url!r})\n@app.task\ndef work(): ...\n")
    for command in (["migrate", "shop:app"], ["queues", "shop:app"]):
        ran = subprocess.run(
            [sys.executable, "-m", "relet", *command], cwd=tmp_path, capture_output=True, text=True, timeout=60
        )
        assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize(
    "url", ["mysql+pymysql://db/shop", "postgresql+pg8000://db/shop", "sqlite+pysqlcipher:///x.db"]
)
def test_other_drivers_are_refused(url: str) -> None:
    with pytest.raises(InvalidInput, match=r"starts with sqlite:// or postgresql://, not"):
        App(url).client.count()


def test_the_url_of_an_engine_keeps_its_password() -> None:
    url = "postgresql+psycopg://ada:s%40crat@db.example/shop"
    async_url = url.replace("psycopg", "asyncpg")
    assert database_url(create_engine(url)) == url
    assert database_url(create_async_engine(async_url)) == async_url
    assert database_url(make_url(url)) == url
    assert database_url(url) == url
    with pytest.raises(InvalidInput, match=r"the password in .* is \*\*\*, by which SQLAlchemy hides it") as caught:
        App(str(create_engine(url).url)).client.count()
    assert "s%40crat" not in str(caught.value)
    with pytest.raises(InvalidInput, match=r"is a str, not URL.*database_url\(url\)"):
        App(make_url(url)).client.count()  # type: ignore[arg-type]


# Alembic

OWN = MetaData()
Table("orders", OWN, Column("id", Integer, primary_key=True))
Table("relet_notes", OWN, Column("id", Integer, primary_key=True))  # of the program, in spite of its name


def proposals(connection: Connection, metadata: MetaData, **options: Any) -> list[str]:
    """The operations that autogenerate would write into a migration."""
    context = MigrationContext.configure(connection, opts={"compare_type": True, **options})
    found: list[Any] = compare_metadata(context, metadata)
    return sorted(f"{one[0]} {one[1].name}" for one in found)


def test_autogenerate_leaves_the_tables_of_relet_alone(database: str) -> None:
    with App(database) as app:
        app.client.migrate()
    engine = engine_of(database)
    OWN.create_all(engine)
    with engine.begin() as connection:
        connection.execute(text("create table old_orders (id integer primary key)"))
    filters = {"include_name": include_name, "include_object": include_object, "include_schemas": True}
    with engine.connect() as connection:
        unfiltered = proposals(connection, OWN, include_schemas=True)
        assert any("remove_table" in one and "jobs" in one for one in unfiltered), "there is something to leave out"
        assert proposals(connection, OWN, **filters) == ["remove_table old_orders"]
        alone = proposals(connection, MetaData(), include_object=include_object)
        assert alone == ["remove_table old_orders", "remove_table orders"]


def test_autogenerate_knows_other_schemas_and_tenants(database: str) -> None:
    with App(database, schema="queue") as app:
        app.client.migrate()
        if database.startswith("postgres"):
            app.client.tenant("acme").migrate()
    filters = {"include_name": name_filter("queue"), "include_object": object_filter("queue")}
    with engine_of(database).connect() as connection:
        assert proposals(connection, MetaData(), include_schemas=True) != []
        assert proposals(connection, MetaData(), include_schemas=True, **filters) == []
        assert proposals(connection, MetaData(), include_schemas=True, include_object=object_filter("queue")) == []


ENV = """
from alembic import context
from shop import Base, engine
from relet.contrib.alembic import include_name, include_object

with engine.connect() as connection:
    context.configure(
        connection=connection, target_metadata=Base.metadata, include_name=include_name, include_object=include_object,
    )
    with context.begin_transaction():
        context.run_migrations()
"""
SHOP = """
from sqlalchemy import create_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

class Base(DeclarativeBase): ...

class Order(Base):
    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True)

engine = create_engine({url!r})
"""


def test_the_command_of_alembic_writes_a_migration_of_the_program_alone(database: str, tmp_path: Path) -> None:
    with App(database) as app:
        app.client.migrate()
    (tmp_path / "shop.py").write_text(SHOP.format(url=database.replace("postgresql:", "postgresql+psycopg:")))

    def alembic(*arguments: str) -> None:
        ran = subprocess.run(
            [sys.executable, "-m", "alembic", *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=60
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr

    alembic("init", "migrations")
    (tmp_path / "migrations" / "env.py").write_text(ENV)
    alembic("revision", "--autogenerate", "-m", "orders")
    (written,) = (tmp_path / "migrations" / "versions").glob("*.py")
    upgrade = written.read_text().partition("def upgrade")[2].partition("def downgrade")[0]
    assert "op.create_table('orders'" in upgrade
    assert "drop" not in upgrade
    alembic("upgrade", "head")
    with App(database) as app:
        assert app.client.count() == 0
