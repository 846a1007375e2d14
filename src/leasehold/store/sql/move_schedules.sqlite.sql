-- move_schedules: when schedules are due next.
update {schema}.schedules
set next_at = (select json_extract(b.value, '$.next_at') from json_each(:batch) b where json_extract(b.value, '$.name') = name)
where name in (select json_extract(b.value, '$.name') from json_each(:batch) b);
