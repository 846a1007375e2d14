-- The queues of jobs, as a gateway compares them with the queues that a token is limited to.
select j.id::text, j.queue from {schema}.all_jobs j where j.id = any(:ids::text[]::uuid[])
