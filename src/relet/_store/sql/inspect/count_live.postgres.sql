-- How many jobs are not over, counted no further than the limit.
select count(*) from (select 1 from {schema}.jobs where {filter} limit :limit::integer) as counted
