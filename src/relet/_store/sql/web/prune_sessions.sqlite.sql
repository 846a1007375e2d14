-- Delete records of sessions that have expired by now.
delete from {schema}.ended_sessions where id in (
    select id from {schema}.ended_sessions where until < {now} limit :limit);
