-- Store a schedule as an operator sets it. The declaration of the code is kept: it applies again once it changes.
insert into {schema}.schedules as s (name, task, definition, next_at, moved_at, changed_at)
values (:name::text, :task::text, :definition::text::json, to_timestamp(:next_at::float8), {now}, {now})
on conflict (name) do update
set task = excluded.task, definition = excluded.definition, next_at = excluded.next_at, moved_at = excluded.moved_at,
    changed_at = excluded.changed_at
