-- Delete records of sessions that have expired by now.
with old as materialized (
    select id from {schema}.ended_sessions where until < {now} order by id limit :limit::integer for update skip locked
)
delete from {schema}.ended_sessions where id in (select id from old)
