-- How many jobs have failed, or are running, counted no further than the limit. Each state has an index, which a
-- statement uses only if it names the state. Materialized, or the planner would read all jobs in the order of ids.
with rare as materialized (
    select * from {schema}.jobs where state = 'failed' and :rare_state::text = 'failed'
    union all
    select * from {schema}.jobs
    where expires_at between '-infinity' and 'infinity' and state = 'running' and :rare_state::text = 'running'
)
select count(*) from (select 1 from rare where {filter} limit :limit::integer) as counted
