-- How many jobs have failed, or are running, counted no further than the limit.
select count(*) from (
    select 1 from {schema}.jobs where state = :rare_state::text::{schema}.job_state and {filter}
    limit :limit::integer
) as counted
