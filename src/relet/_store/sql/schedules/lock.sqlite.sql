-- Read one schedule, before it is changed.
select definition, next_at from {schema}.schedules where name = :name;
