-- One schedule, before something is done with it in a later statement.
select definition::text, extract(epoch from next_at)::float8 from {schema}.schedules where name = :name::text for update
