-- The attempts that ended without success, and the one that runs, or that finished the job.
select attempt, version, worker, started_at, ended_at, outcome, error, renewed_at, expires_at, error_type
from {schema}.attempts where job = :id
union all
select attempt, version, worker, started_at, finished_at, state, case when state <> 'running' then error end,
       renewed_at, expires_at, case when state <> 'running' then error_type end
from {schema}.all_jobs where id = :id and worker is not null
order by 2;
