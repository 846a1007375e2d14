-- Ticks again, from this one on. One that was not paused goes on as it was.
update {schema}.schedules set paused = 0, next_at = :next_at, moved_at = {now}, changed_at = {now} where name = :name and paused;
