-- move_schedule: when a schedule is due next.
update {schema}.schedules set next_at = :next_at where name = :name;
