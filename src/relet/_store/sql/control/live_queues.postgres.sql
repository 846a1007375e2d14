-- The queues of all jobs that are not over. Reads the whole table.
select distinct queue from {schema}.jobs
