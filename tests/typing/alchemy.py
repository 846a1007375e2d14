"""SQLAlchemy and Alembic with relet, as in docs/guides/sqlalchemy.md. Type checkers must find nothing wrong here."""

from __future__ import annotations

from alembic import context
from sqlalchemy import Engine, MetaData, create_engine
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, create_async_engine
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from relet import App, Job
from relet.contrib.alembic import include_name, include_object, name_filter, object_filter
from relet.contrib.sqlalchemy import database_url

engine: Engine = create_engine("sqlite:///:memory:")
async_engine: AsyncEngine = create_async_engine("sqlite+aiosqlite:///:memory:")
app = App(database_url(engine))
other = App(database_url(async_engine))


@app.task
def confirm(order: int) -> str:
    return f"order {order}"


def in_a_session(sessions: scoped_session[Session]) -> Job[str]:
    with Session(engine) as session, session.begin():
        confirm.using(connection=session).enqueue(7)
    with sessionmaker(engine).begin() as session:
        app.client.enqueue_many([confirm.draft(8)], connection=session)
    return confirm.using(connection=sessions).enqueue(9)


async def in_an_async_session() -> Job[str]:
    async with AsyncSession(async_engine) as session, session.begin():
        return await confirm.using(connection=session).aenqueue(7)


def migrate(metadata: MetaData) -> None:
    with engine.connect() as connection:
        context.configure(
            connection=connection,
            target_metadata=metadata,
            include_name=include_name,
            include_object=include_object,
        )
        context.configure(
            connection=connection, include_name=name_filter("queue"), include_object=object_filter("queue")
        )
