-- see_worker: a worker says that it is there, and what it does.
insert into {schema}.workers as w (name, host, pid, about, running, stopping, started_at, seen_at)
values (:name::text, :host::text, :pid::integer, :about::text::json, :running::integer, :stopping::boolean, {now}, {now})
on conflict (name) do update
set about = excluded.about, running = excluded.running, stopping = excluded.stopping, seen_at = excluded.seen_at
returning w.name
