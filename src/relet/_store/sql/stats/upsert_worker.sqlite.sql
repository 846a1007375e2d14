-- A worker says that it is there, and what it does. Nothing comes back of a report that was heard before.
insert into {schema}.workers as w (name, host, pid, about, running, stopping, report, started_at, seen_at)
values (:name, :host, :pid, :about, :running, :stopping, :report, {now}, {now})
on conflict (name) do update
set about = excluded.about, running = excluded.running, stopping = excluded.stopping, report = excluded.report,
    seen_at = excluded.seen_at
where w.report <> excluded.report
returning name;
