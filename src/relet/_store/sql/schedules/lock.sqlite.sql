-- Read one schedule, before it is changed.
select definition, next_at, declared from {schema}.schedules where name = :name;
