-- Record that a web session was signed out before it expired.
insert into {schema}.ended_sessions (id, until)
values (:id::text, {now} + make_interval(secs => :seconds::float8))
on conflict (id) do nothing
