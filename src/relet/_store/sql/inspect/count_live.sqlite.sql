-- How many jobs are not over, counted no further than asked.
select count(*) from (select 1 from {schema}.jobs where {filter} limit coalesce(:most, -1)) as counted;
