-- queue_counts: live jobs by queue and state.
select queue, state, count(*) from jobs group by queue, state;
