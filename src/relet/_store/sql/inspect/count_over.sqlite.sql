-- How many jobs are over, counted no further than the limit.
select count(*) from (select 1 from {schema}.finished where {filter} limit coalesce(:limit, -1)) as counted;
