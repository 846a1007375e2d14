-- Live jobs by queue and state, and for how many seconds the first of them has been due. Reads all of them.
select queue, state::text, count(*), extract(epoch from {now} - min(run_at))::float8 from {schema}.jobs
group by queue, state
