-- see_worker: a worker says that it is there, and what it does.
insert into {schema}.workers (name, host, pid, about, running, stopping, started_at, seen_at)
values (:name, :host, :pid, :about, :running, :stopping, {now}, {now})
on conflict (name) do update
set about = excluded.about, running = excluded.running, stopping = excluded.stopping, seen_at = excluded.seen_at
returning name;
