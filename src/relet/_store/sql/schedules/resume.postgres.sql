-- Ticks again, from this one on. One that was not paused goes on as it was.
update {schema}.schedules set paused = false, next_at = to_timestamp(:next_at::float8), moved_at = {now}, changed_at = {now}
where name = :name::text and paused
