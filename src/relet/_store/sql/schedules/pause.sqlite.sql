-- Stop a schedule.
update {schema}.schedules set paused = 1, changed_at = {now} where name = :name;
