-- The class of the exception that ended an attempt, as module and name.
-- oldest: 1

alter table {schema}.attempts add column error_type text;
alter table {schema}.finished add column error_type text;  -- of the attempt that ended the job

-- The views of 0002, with the class of the job's error. The attempt that has the same error has its class: a release
-- that does not know the column may have stored a later error.
-- {kept}: id, chain, created_at, run_at, attempt, max_attempts, version, position, priority, queue, task, payload,
--     started_at, renewed_at, worker, target, group_key, unique_key, context
drop view {schema}.all_jobs;
drop view {schema}.live_jobs;
drop view {schema}.over_jobs;
create view {schema}.live_jobs as
    select state, wait, losses, token, holds, waits, expires_at, request, awaits, policy, progress, error,
           null as result, 0 as continued, stopped_at as finished_at, {kept}, start_by,
           (select json_group_array(tag) from (
               select t.tag from {schema}.tags t where t.job = j.id order by t.tag)) as tags,
           (select r.rerun_of from {schema}.reruns r where r.job = j.id) as rerun_of,
           (select a.error_type from {schema}.attempts a where a.job = j.id and a.error = j.error
            order by a.version desc limit 1) as error_type
    from {schema}.jobs j;
create view {schema}.over_jobs as
    select state, null as wait, losses, token, 0 as holds, 0 as waits, null as expires_at, null as request,
           null as awaits, null as policy, null as progress, error, result, continued, finished_at, {kept},
           null as start_by,
           (select json_group_array(tag) from (
               select t.tag from {schema}.tags t where t.job = f.id order by t.tag)) as tags,
           (select r.rerun_of from {schema}.reruns r where r.job = f.id) as rerun_of,
           coalesce(f.error_type, (select a.error_type from {schema}.attempts a where a.job = f.id and a.error = f.error
            order by a.version desc limit 1)) as error_type
    from {schema}.finished f;
create view {schema}.all_jobs as select * from {schema}.live_jobs union all select * from {schema}.over_jobs;
