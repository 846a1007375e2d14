-- Record that a web session was signed out before it expired.
insert into {schema}.ended_sessions (id, until) values (:id, {now} + :seconds) on conflict (id) do nothing;
