-- One schedule, before something is done with it.
select definition, next_at from {schema}.schedules where name = :name;
