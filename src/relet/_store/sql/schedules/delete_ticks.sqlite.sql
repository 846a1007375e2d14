-- Delete the ticks of a deleted schedule.
delete from {schema}.ticks where schedule = :name;
