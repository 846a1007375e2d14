-- Live jobs by queue and state, and for how many seconds the first of them has been due. Reads all of them.
select queue, state, count(*), {now} - min(run_at) from {schema}.jobs group by queue, state;
