-- Sessions that would be over by now in any case.
delete from {schema}.ended_sessions where id in (
    select id from {schema}.ended_sessions where until < {now} limit :most);
