-- A worker is about to sleep: it wants to be notified of jobs of these queues and tasks for so many seconds.
insert into {schema}.sleepers as s (key, kind, queues, tasks, until)
values (:key::integer, :kind::integer, :queues::text[], :tasks::text[], {now} + make_interval(secs => :seconds::float8))
on conflict (key) do update set kind = excluded.kind, queues = excluded.queues, tasks = excluded.tasks,
                                until = excluded.until
returning s.key
