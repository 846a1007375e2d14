-- The attempts that ended without success, and the one that runs, or that finished the job.
select attempt, version, worker, extract(epoch from started_at)::float8, extract(epoch from ended_at)::float8, outcome,
       error, extract(epoch from renewed_at)::float8, extract(epoch from expires_at)::float8, error_type
from {schema}.attempts where job = :id::text::uuid
union all
select attempt, version, worker, extract(epoch from started_at)::float8, extract(epoch from finished_at)::float8,
       state::text, case when state <> 'running' then error end, extract(epoch from renewed_at)::float8,
       extract(epoch from expires_at)::float8, case when state <> 'running' then error_type end
from {schema}.all_jobs where id = :id::text::uuid and worker is not null
order by 2
