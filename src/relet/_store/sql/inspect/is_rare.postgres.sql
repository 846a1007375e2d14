-- Whether so few jobs have failed, or are running, that all of them can be read for a page.
select count(*) <= :limit::integer from (
    (select 1 from {schema}.jobs where state = 'failed' and :rare_state::text = 'failed'
     limit :limit::integer + 1)
    union all
    (select 1 from {schema}.jobs
     where expires_at between '-infinity' and 'infinity' and :rare_state::text = 'running'
     limit :limit::integer + 1)
) as counted
