-- Resume a schedule with this tick. One that was not paused stays as it is.
update {schema}.schedules set paused = 0, next_at = :next_at, moved_at = {now}, changed_at = {now}
where name = :name and paused;
