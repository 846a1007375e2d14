-- Resume a schedule with this tick. One that was not paused stays as it is.
update {schema}.schedules
set paused = false, next_at = to_timestamp(:next_at::float8), moved_at = {now}, changed_at = {now}
where name = :name::text and paused
