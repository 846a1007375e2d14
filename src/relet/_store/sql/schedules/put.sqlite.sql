-- As somebody says it now. What code has said is remembered: it counts again when it changes.
insert into {schema}.schedules as s (name, task, definition, next_at, moved_at, changed_at)
values (:name, :task, :definition, :next_at, {now}, {now})
on conflict (name) do update
set task = excluded.task, definition = excluded.definition, next_at = excluded.next_at, moved_at = excluded.moved_at,
    changed_at = excluded.changed_at;
