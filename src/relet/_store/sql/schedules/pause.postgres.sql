-- Stop a schedule.
update {schema}.schedules set paused = true, changed_at = {now} where name = :name::text
