-- move_schedule: when a schedule, locked by an earlier statement, is due next.
update {schema}.schedules set next_at = to_timestamp(:next_at::float8) where name = :name::text
