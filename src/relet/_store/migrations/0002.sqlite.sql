-- Limits by group, limits that code declares, the latest start of a job, tags, and reruns. In `queues`, `rated` is set
-- for queues with limits by group, too.
-- oldest: 1

alter table {schema}.queues add column declared text;  -- the limits that code declared last, as JSON

-- How many jobs of a group may run at once. Group '*': of each group.
create table {schema}.group_limits (
    queue        text not null,
    group_key    text not null,
    max_running  integer not null check (max_running >= 0),
    primary key (queue, group_key)
) without rowid;
create index {schema}.jobs_group_running on {schema}.jobs (queue, group_key)
    where state = 'running' and group_key is not null;

-- In a queue with limits by group, the groups that may have a job which can start: a claim reads no other groups.
-- Triggers add a group when a job is queued or an attempt ends.
create table {schema}.ready_groups (
    queue      text not null,
    group_key  text not null,
    primary key (queue, group_key)
) without rowid;

-- Jobs that have not started by then are cancelled.
alter table {schema}.jobs add column start_by real;
create index {schema}.jobs_start_by on {schema}.jobs (start_by) where start_by is not null and version = 0;

create table {schema}.tags (
    tag  text not null,
    job  text not null,
    primary key (tag, job)
) without rowid;
create index {schema}.tags_job on {schema}.tags (job);

-- Jobs that were made from the arguments of an earlier one.
create table {schema}.reruns (
    job       text primary key not null,
    rerun_of  text not null
) without rowid;
create index {schema}.reruns_of on {schema}.reruns (rerun_of);

-- The views of 0001, with the latest start, the tags and the job that was rerun.
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
           (select r.rerun_of from {schema}.reruns r where r.job = j.id) as rerun_of
    from {schema}.jobs j;
create view {schema}.over_jobs as
    select state, null as wait, losses, token, 0 as holds, 0 as waits, null as expires_at, null as request,
           null as awaits, null as policy, null as progress, error, result, continued, finished_at, {kept},
           null as start_by,
           (select json_group_array(tag) from (
               select t.tag from {schema}.tags t where t.job = f.id order by t.tag)) as tags,
           (select r.rerun_of from {schema}.reruns r where r.job = f.id) as rerun_of
    from {schema}.finished f;
create view {schema}.all_jobs as select * from {schema}.live_jobs union all select * from {schema}.over_jobs;

create trigger {schema}.group_of_new_job after insert on {schema}.jobs
when new.group_key is not null and new.state = 'queued'
begin
    insert or ignore into {schema}.ready_groups (queue, group_key) select new.queue, new.group_key
    where exists (select 1 from {schema}.group_limits l where l.queue = new.queue);
end;

create trigger {schema}.group_of_changed_job after update of state on {schema}.jobs
when new.group_key is not null and new.state <> 'running' and (new.state = 'queued' or old.state = 'running')
begin
    insert or ignore into {schema}.ready_groups (queue, group_key) select new.queue, new.group_key
    where exists (select 1 from {schema}.group_limits l where l.queue = new.queue);
end;

create trigger {schema}.group_of_ended_job after delete on {schema}.jobs
when old.group_key is not null and old.state = 'running'
begin
    insert or ignore into {schema}.ready_groups (queue, group_key) select old.queue, old.group_key
    where exists (select 1 from {schema}.group_limits l where l.queue = old.queue);
end;
