-- How many jobs are over, counted no further than asked.
select count(*) from (select 1 from {schema}.finished where {filter} limit :most::integer) as counted
