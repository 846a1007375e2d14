-- How many jobs have failed, or are running, counted no further than the limit.
select count(*) from (
    select 1 from (
        select * from {schema}.jobs indexed by {schema}.jobs_failed where state = 'failed' and :rare_state = 'failed'
        union all
        select * from {schema}.jobs indexed by {schema}.jobs_leased
        where expires_at is not null and :rare_state = 'running'
    )
    where {filter}
    limit coalesce(:limit, -1)
) as counted;
