-- Limits by group, limits that code declares, the latest start of a job, tags, and reruns.
-- oldest: 1

alter table {schema}.queues add column declared json;  -- the limits that code declared last
comment on column {schema}.queues.rated is 'the queue has rates or limits by group';

-- How many jobs of a group may run at once. Group '*': of each group.
create table {schema}.group_limits (
    queue        text not null,
    group_key    text not null,
    max_running  integer not null check (max_running >= 0),
    primary key (queue, group_key)
);
-- The collation distinguishes it from other indexes, which the planner would choose: it does not know how many jobs of
-- other groups come first.
drop index {schema}.jobs_group;
create index jobs_group on {schema}.jobs (queue collate "POSIX", suspect, group_key collate "POSIX", rank, seq)
    where state = 'queued' and group_key is not null;
create index jobs_group_running on {schema}.jobs (queue collate "POSIX", group_key collate "POSIX")
    where state = 'running' and group_key is not null;

-- In a queue with limits by group, the groups that may have a job which can start: a claim reads no other groups. Only
-- transactions that hold the lock of the queue's row write here.
create table {schema}.ready_groups (
    queue      text not null,
    group_key  text collate "POSIX" not null,
    primary key (queue, group_key)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

-- Groups in which a job was queued or an attempt has ended. The next claim moves them to `ready_groups`. Rows are only
-- added, so that no transaction waits for another.
create table {schema}.group_nudges (
    queue      text not null,
    id         bigint generated always as identity,
    group_key  text not null,
    primary key (queue, id)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

-- Jobs that have not started by then are cancelled.
alter table {schema}.jobs add column start_by timestamptz;
create index jobs_start_by on {schema}.jobs (start_by) where start_by is not null and version = 0;

create table {schema}.tags (
    tag  text not null,
    job  uuid not null,
    primary key (tag, job)
);
create index tags_job on {schema}.tags (job);

-- Jobs that were made from the arguments of an earlier one.
create table {schema}.reruns (
    job       uuid primary key,
    rerun_of  uuid not null
);
create index reruns_of on {schema}.reruns (rerun_of);

-- The views of 0001, with the latest start, the tags and the job that was rerun.
-- {kept}: id, chain, created_at, run_at, attempt, max_attempts, version, "position", priority, queue, task, payload,
--     started_at, renewed_at, worker, target, group_key, unique_key, context
create or replace view {schema}.live_jobs as
    select state, wait, losses, token, holds, waits, expires_at, request, awaits, policy, progress, error,
           null::json as result, false as continued, stopped_at as finished_at, {kept}, start_by,
           coalesce((select json_agg(t.tag order by t.tag) from {schema}.tags t where t.job = j.id), '[]') as tags,
           (select r.rerun_of from {schema}.reruns r where r.job = j.id) as rerun_of
    from {schema}.jobs j;
create or replace view {schema}.over_jobs as
    select state, null::text as wait, losses, token, false as holds, 0 as waits, null::timestamptz as expires_at,
           null::text as request, null::text as awaits, null::json as policy, null::json as progress, error, result,
           continued, finished_at, {kept}, null::timestamptz as start_by,
           coalesce((select json_agg(t.tag order by t.tag) from {schema}.tags t where t.job = f.id), '[]') as tags,
           (select r.rerun_of from {schema}.reruns r where r.job = f.id) as rerun_of
    from {schema}.finished f;
create or replace view {schema}.all_jobs as
    select * from {schema}.live_jobs union all select * from {schema}.over_jobs;

-- The settings of this function make sequential scans expensive. Before PostgreSQL 18 that expense alone has the server
-- compile the statement, which takes a quarter of a second.
alter function {schema}.lock_limits(text[]) set jit = off;

-- succeed_plain: running -> succeeded, for jobs without a follower. `ids` are sorted and unique, and `tokens` have the
-- same order: so one scan of the primary key finds the rows, and a binary search finds each token. Returns how many
-- jobs were still leased by these tokens, and whether any job waited for one of them, or one occupied its target. The
-- settings fix the plan, whatever the statistics are, also behind a pooler: a plan made for these ids would expect one
-- job to be running, and read all of them.
create or replace function {schema}.succeed_plain(ids uuid[], tokens uuid[], results text[], moment timestamptz)
returns table (number bigint, watched boolean, held boolean) language plpgsql
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
#variable_conflict use_column
declare
    total    bigint;
    targets  text[];  -- targets that are free now
    chains   uuid[];  -- chains that jobs wait for
    keyed    uuid[];
    unkeyed  text[];
    queues   text[];  -- of the jobs that had a group
    groups   text[];
begin
    with gone as (
        delete from {schema}.jobs j
        where j.id = any(ids) and j.token = tokens[width_bucket(j.id, ids)] and j.state = 'running'
        returning {j.kept}, j.losses, j.token, j.watched, j.holds, results[width_bucket(j.id, ids)] as result
    ),
    kept as (
        insert into {schema}.finished ({kept}, losses, token, state, result, finished_at)
        select {kept}, losses, token, 'succeeded', coalesce(result, 'null')::json, moment from gone
    )
    select count(*), array_agg(target) filter (where holds), array_agg(chain) filter (where watched),
           array_agg(id) filter (where unique_key is not null),
           array_agg(unique_key) filter (where unique_key is not null),
           array_agg(queue) filter (where group_key is not null),
           array_agg(group_key) filter (where group_key is not null)
    into total, targets, chains, keyed, unkeyed, queues, groups
    from gone;
    if targets is not null or chains is not null then
        insert into {schema}.nudges (kind, key)
        select 'target', target from unnest(targets) as target
        union all
        select 'chain', chain::text from unnest(chains) as chain;
    end if;
    if keyed is not null then
        -- Skip a locked key: another job is taking it over, and the key of a job that has ended blocks no other job.
        delete from {schema}.keys where key = any(array(
            select k.key from {schema}.keys k
            where k.key = any(unkeyed) and k.job = any(keyed) and k.until is null
            for update skip locked));
    end if;
    if queues is not null then
        insert into {schema}.group_nudges (queue, group_key)
        select distinct n.queue, n.group_key from unnest(queues, groups) as n(queue, group_key)
        where n.queue = any(array(select l.queue from {schema}.group_limits l));
    end if;
    return query select total, chains is not null, targets is not null;
end $$;

-- For triggers and other languages: does the same as the client's enqueue, with the checks that SQL can make. Returns
-- the id of the job; if the id or the unique key exists already, that of the existing job. A role that may only
-- enqueue needs usage of the schema and execute on this function.
create or replace function {schema}.enqueue(
    task text, payload json default '{}', queue text default 'default', priority integer default 0,
    run_at timestamptz default null, delay double precision default null, target text default null,
    unique_key text default null, unique_for double precision default null, depends_on uuid[] default '{}',
    max_attempts integer default 4, id uuid default null, group_key text default null
) returns uuid
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    given   boolean := enqueue.id is not null;
    new_id  uuid := enqueue.id;
    due     timestamptz := enqueue.run_at;
    ahead   boolean;
    chains  uuid[];
    waits   integer := 0;
    wait    text;
    holder  uuid;
begin
    if not given then  -- a UUIDv7: the time, then the random part of a UUIDv4, with its variant
        new_id := (left(replace({schema}.first_id(clock_timestamp())::text, '-', ''), 12) || '7'
                   || substr(replace(gen_random_uuid()::text, '-', ''), 14))::uuid;
    end if;
    if enqueue.task is null or enqueue.task !~ '^[A-Za-z0-9_.:/@+-]{1,128}$' then
        raise exception 'relet: task must be 1 to 128 letters, digits or _ . : / @ + -' using errcode = '22023';
    elsif enqueue.queue is null or enqueue.queue !~ '^[A-Za-z0-9_.:/@+-]{1,128}$' then
        raise exception 'relet: queue must be 1 to 128 letters, digits or _ . : / @ + -' using errcode = '22023';
    elsif enqueue.priority is null or enqueue.priority not between -100 and 100 then
        raise exception 'relet: priority must be from -100 to 100' using errcode = '22023';
    elsif {schema}.payload_problem(enqueue.payload) is not null then
        raise exception 'relet: payload %', {schema}.payload_problem(enqueue.payload) using errcode = '22023';
    elsif not {schema}.is_printable(enqueue.target) then
        raise exception 'relet: target must be 1 to 512 printable characters' using errcode = '22023';
    elsif not {schema}.is_printable(enqueue.group_key) or enqueue.group_key = '*' then
        raise exception 'relet: group_key must be 1 to 512 printable characters, and not *' using errcode = '22023';
    elsif not {schema}.is_printable(enqueue.unique_key) then
        raise exception 'relet: unique_key must be 1 to 512 printable characters' using errcode = '22023';
    elsif enqueue.unique_for is not null
        and (enqueue.unique_key is null or enqueue.unique_for not between 0.001 and 316224000) then
        raise exception 'relet: unique_for needs a unique_key, and is seconds from 0.001 to ten years'
            using errcode = '22023';
    elsif enqueue.run_at is not null and enqueue.delay is not null then
        raise exception 'relet: give run_at or delay, not both' using errcode = '22023';
    elsif enqueue.delay not between 0 and 316224000 or enqueue.run_at < '1970-01-01Z'
        or enqueue.run_at >= '2100-01-01Z' then
        raise exception 'relet: delay is seconds from 0 to ten years, run_at lies between 1970 and 2100'
            using errcode = '22023';
    elsif enqueue.max_attempts is null or enqueue.max_attempts not between 1 and 10000 then
        raise exception 'relet: max_attempts must be from 1 to 10000' using errcode = '22023';
    elsif new_id::text !~ '^.{14}7.{4}[89ab]' or new_id < {schema}.first_id('2020-01-01Z')
        or new_id >= {schema}.first_id('2100-01-01Z') then
        raise exception 'relet: id must be a UUIDv7 whose time lies between 2020 and 2100' using errcode = '22023';
    elsif array_position(enqueue.depends_on, null) is not null then
        raise exception 'relet: depends_on has a null in it' using errcode = '22023';
    end if;
    if due is null then
        due := statement_timestamp() + make_interval(secs => coalesce(enqueue.delay, 0));
    end if;
    ahead := due > statement_timestamp();

    if given and exists (select from {schema}.all_jobs j where j.id = new_id) then
        return new_id;
    end if;
    if enqueue.depends_on <> '{}' then  -- ended jobs must not be pruned before this transaction ends
        perform 1 from {schema}.finished f
        where f.id = any(array(select j.chain from {schema}.all_jobs j where j.id = any(enqueue.depends_on)))
        order by f.id for key share;
        perform 1 from {schema}.finished f
        where f.chain = any(array(select j.chain from {schema}.all_jobs j where j.id = any(enqueue.depends_on)))
          and f."position" > 0
        order by f.id for key share;
    end if;
    select array_agg(c.chain order by c.place), coalesce(sum(c.named), 0) into chains, waits
    from (select j.chain, min(a.place) as place, count(distinct j.id) as named
          from unnest(enqueue.depends_on) with ordinality a(id, place) join {schema}.all_jobs j on j.id = a.id
          group by j.chain) c;
    if waits < (select count(distinct a) from unnest(enqueue.depends_on) a) then
        raise exception 'relet: depends_on names a job that does not exist' using errcode = '22023';
    end if;
    waits := coalesce(array_length(chains, 1), 0);

    if enqueue.unique_key is not null then
        holder := {schema}.take_key(enqueue.unique_key, new_id, null, enqueue.unique_for, null);
        if holder <> new_id and exists (select from {schema}.all_jobs j where j.id = holder) then
            return holder;
        elsif holder <> new_id then
            raise exception 'relet: unique_key % is taken, though job % is gone', enqueue.unique_key, holder
                using errcode = '23505';
        end if;
    end if;

    wait := case when waits > 0 then 'jobs' when ahead then 'time' when enqueue.target is not null then 'target' end;
    insert into {schema}.jobs (id, state, wait, queue, task, priority, rank, target, group_key, payload, run_at,
                               max_attempts, unique_key, windowed, chain, waits, dependency_count, created_at)
    values (new_id, (case when wait is null then 'queued' else 'pending' end)::{schema}.job_state, wait, enqueue.queue,
            enqueue.task, enqueue.priority, -enqueue.priority, enqueue.target,
            coalesce(enqueue.group_key, (select '' from {schema}.queues q where q.queue = enqueue.queue
                and q.by_group)),
            enqueue.payload, due, enqueue.max_attempts, enqueue.unique_key,
            enqueue.unique_for is not null, new_id, waits, waits, statement_timestamp())
    on conflict do nothing;
    if not found then
        return new_id;
    end if;
    if given and exists (select from {schema}.finished f where f.id = new_id) then
        delete from {schema}.jobs j where j.id = new_id;  -- it finished just now, and must not be made live again
        delete from {schema}.keys k where k.job = new_id and k.until is null;
        return new_id;
    end if;
    insert into {schema}.dependencies (job, depends_on, "position")
    select new_id, c.chain, c.place - 1 from unnest(chains) with ordinality c(chain, place);
    if wait in ('target', 'jobs') then
        insert into {schema}.nudges (kind, key)
        values (case wait when 'target' then 'target' else 'job' end,
            case wait when 'target' then enqueue.target else new_id::text end);
    end if;
    if wait is null then
        insert into {schema}.group_nudges (queue, group_key)
        select j.queue, j.group_key from {schema}.jobs j
        where j.id = new_id and j.group_key is not null
          and j.queue = any(array(select l.queue from {schema}.group_limits l));
    end if;
    perform pg_notify({jobs_channel}, '') from {schema}.arming where armed_until > statement_timestamp();
    return new_id;
end $$;
