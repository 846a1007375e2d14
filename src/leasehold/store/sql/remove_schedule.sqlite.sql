-- remove_schedule: and the ticks it had.
delete from {schema}.ticks where schedule = :name;

delete from {schema}.schedules where name = :name returning name;
