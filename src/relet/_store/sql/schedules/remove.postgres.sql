-- And nothing else.
delete from {schema}.schedules where name = :name::text returning name
