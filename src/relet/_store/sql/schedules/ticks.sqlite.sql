-- The ticks of a schedule, the latest first.
select tick, job, note from {schema}.ticks where schedule = :name order by tick desc limit :limit;
