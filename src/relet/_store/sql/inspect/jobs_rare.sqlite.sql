-- A page of jobs that have failed, or that are running, newest first by id. They are few among many, and each state has
-- an index.
select {job} from {schema}.live_jobs
where id in (
    select id from {schema}.jobs indexed by {schema}.jobs_failed where state = 'failed' and :rare_state = 'failed'
    union all
    select id from {schema}.jobs indexed by {schema}.jobs_leased
    where expires_at is not null and :rare_state = 'running'
) and {filter}
order by id desc
limit :limit;
