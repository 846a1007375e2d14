-- move_schedules: when schedules, locked by an earlier statement, are due next.
update {schema}.schedules s set next_at = to_timestamp(b.next_at)
from json_to_recordset(:batch::text::json) as b(name text, next_at float8)
where s.name = b.name
