-- queue_counts: live jobs by queue and state.
select queue, state, count(*) from {schema}.jobs group by queue, state;
