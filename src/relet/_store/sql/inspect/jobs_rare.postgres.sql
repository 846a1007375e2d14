-- A page of jobs that have failed, or that are running, newest first by id. They are few among many, and each state has
-- an index, which a statement uses only if it names the state.
select {job} from {schema}.live_jobs j
where j.id = any(array(
    select f.id from {schema}.jobs f where f.state = 'failed' and :rare_state::text = 'failed'
    union all
    select r.id from {schema}.jobs r
    where r.expires_at between '-infinity' and 'infinity' and r.state = 'running' and :rare_state::text = 'running'
)) and {filter}
order by j.id desc
limit :limit::integer
