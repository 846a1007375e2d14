-- Store a schedule as the code declares it, if the declaration has changed.
insert into {schema}.schedules as s (name, task, definition, declared, next_at, moved_at, changed_at)
values (:name, :task, :definition, :declared, :next_at, {now}, {now})
on conflict (name) do update
set task = excluded.task, definition = excluded.definition, declared = excluded.declared, next_at = excluded.next_at,
    moved_at = excluded.moved_at,
    changed_at = excluded.changed_at
where s.declared is not excluded.declared;
