-- Whether a session was signed out.
select 1 from {schema}.ended_sessions where id = :id;
