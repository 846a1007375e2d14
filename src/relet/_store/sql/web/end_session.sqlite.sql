-- A session of the web is over before its time.
insert into {schema}.ended_sessions (id, until) values (:id, {now} + :seconds) on conflict (id) do nothing;
