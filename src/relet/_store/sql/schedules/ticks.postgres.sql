-- The ticks of a schedule, the latest first.
select extract(epoch from tick)::float8, job::text, note from {schema}.ticks where schedule = :name::text
order by tick desc limit :limit::integer
