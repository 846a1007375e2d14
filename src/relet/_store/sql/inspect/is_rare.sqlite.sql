-- Whether so few jobs have failed, or are running, that all of them can be read for a page.
select count(*) <= :limit from (
    select * from (
        select 1 from {schema}.jobs indexed by {schema}.jobs_failed where state = 'failed' and :rare_state = 'failed'
        limit :limit + 1)
    union all
    select * from (
        select 1 from {schema}.jobs indexed by {schema}.jobs_leased
        where expires_at is not null and :rare_state = 'running'
        limit :limit + 1)
) as counted;
