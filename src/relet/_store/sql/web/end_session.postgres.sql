-- A session of the web is over before its time.
insert into {schema}.ended_sessions (id, until)
values (:id::text, {now} + make_interval(secs => :seconds::float8))
on conflict (id) do nothing
