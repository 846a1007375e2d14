-- Whether a session was signed out.
select true from {schema}.ended_sessions where id = :id::text
