-- The class of the exception that ended an attempt, as module and name.
-- oldest: 1

alter table {schema}.attempts add column error_type text;
alter table {schema}.finished add column error_type text;  -- of the attempt that ended the job

-- The views of 0002, with the class of the job's error. The attempt that has the same error has its class: a release
-- that does not know the column may have stored a later error.
-- {kept}: id, chain, created_at, run_at, attempt, max_attempts, version, "position", priority, queue, task, payload,
--     started_at, renewed_at, worker, target, group_key, unique_key, context
create or replace view {schema}.live_jobs as
    select state, wait, losses, token, holds, waits, expires_at, request, awaits, policy, progress, error,
           null::json as result, false as continued, stopped_at as finished_at, {kept}, start_by,
           coalesce((select json_agg(t.tag order by t.tag) from {schema}.tags t where t.job = j.id), '[]') as tags,
           (select r.rerun_of from {schema}.reruns r where r.job = j.id) as rerun_of,
           (select a.error_type from {schema}.attempts a where a.job = j.id and a.error = j.error
            order by a.version desc limit 1) as error_type
    from {schema}.jobs j;
create or replace view {schema}.over_jobs as
    select state, null::text as wait, losses, token, false as holds, 0 as waits, null::timestamptz as expires_at,
           null::text as request, null::text as awaits, null::json as policy, null::json as progress, error, result,
           continued, finished_at, {kept}, null::timestamptz as start_by,
           coalesce((select json_agg(t.tag order by t.tag) from {schema}.tags t where t.job = f.id), '[]') as tags,
           (select r.rerun_of from {schema}.reruns r where r.job = f.id) as rerun_of,
           coalesce(f.error_type, (select a.error_type from {schema}.attempts a where a.job = f.id and a.error = f.error
            order by a.version desc limit 1)) as error_type
    from {schema}.finished f;
create or replace view {schema}.all_jobs as
    select * from {schema}.live_jobs union all select * from {schema}.over_jobs;
