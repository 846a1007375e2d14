-- Delete the schedule itself; its ticks and jobs are left.
delete from {schema}.schedules where name = :name::text returning name
