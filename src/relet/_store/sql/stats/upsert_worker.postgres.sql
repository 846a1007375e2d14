-- Store the report of a worker. Returns no row for a report that was stored before.
insert into {schema}.workers as w (name, host, pid, about, running, stopping, report, started_at, seen_at)
values (:name::text, :host::text, :pid::integer, :about::text::json, :running::integer, :stopping::boolean,
        :report::uuid, {now}, {now})
on conflict (name) do update
set about = excluded.about, running = excluded.running, stopping = excluded.stopping, report = excluded.report,
    seen_at = excluded.seen_at
where w.report <> excluded.report
returning w.name
