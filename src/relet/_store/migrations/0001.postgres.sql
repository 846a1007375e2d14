-- The first schema. `jobs` holds jobs that have not ended, and stays small; `finished` holds those that have.
-- oldest: 1

create sequence {schema}.job_seq;

create type {schema}.job_state as enum ('pending', 'queued', 'running', 'paused', 'failed', 'succeeded', 'cancelled');

-- Whether a row of `jobs` is valid: the only constraint of the table. Every statement that writes would parse an
-- expression in its place, which is a quarter of the server's cost of a single insert. A function is parsed once for
-- each connection.
create function {schema}.is_consistent(
    state {schema}.job_state, attempt integer, max_attempts integer, losses integer, suspect smallint, waits integer,
    priority smallint, rank smallint, holds boolean, target text, wait text, worker text, token uuid, request text,
    started_at timestamptz, expires_at timestamptz, stopped_at timestamptz
) returns boolean language plpgsql immutable as $$
begin
    return case
        when state = 'running' then
            worker is not null and token is not null and started_at is not null and expires_at is not null
            and wait is null and stopped_at is null and (target is null or holds)
            and (request is null or request in ('cancel', 'pause'))
        when worker is not null or started_at is not null or expires_at is not null or request is not null then false
        when state = 'queued' then
            wait is null and stopped_at is null and attempt < max_attempts and (target is null or holds)
        when state = 'pending' then
            wait is not null and wait in ('jobs', 'time', 'target') and stopped_at is null
        when state = 'paused' then  -- it keeps its position in the target's queue
            stopped_at is not null and (wait is null or wait = 'target' and not holds)
        when state = 'failed' then
            wait is null and stopped_at is not null
        else false
    end
    and (target is not null or not holds)
    and priority between -100 and 100 and rank = -priority
    and losses >= 0 and suspect = least(losses, 2)
    and waits >= 0 and max_attempts >= 1 and attempt between 0 and max_attempts;
end $$;

-- Columns of fixed width that are never null come first: PostgreSQL finds them without reading earlier columns.
-- `rank` and `suspect` are plain columns, because a stored generated column costs every claim 3 us a row.
create table {schema}.jobs (
    id                uuid primary key,
    chain             uuid not null,
    -- the order of jobs with equal rank; the id identifies a job
    seq               bigint not null default nextval('{schema}.job_seq'),
    created_at        timestamptz not null,
    run_at            timestamptz not null,
    attempt           integer not null default 0,
    max_attempts      integer not null,
    losses            integer not null default 0,
    version           integer not null default 0,
    position          integer not null default 0,
    waits             integer not null default 0,
    dependency_count  integer not null default 0,  -- how many jobs it had to wait for when it was enqueued
    state             {schema}.job_state not null,
    priority          smallint not null,
    rank              smallint not null,  -- minus the priority, so that (rank, seq) sorts in one direction
    suspect           smallint not null default 0,  -- its losses, at most 2; 2: run it alone
    holds             boolean not null default false,
    alone             boolean not null default false,
    watched           boolean not null default false,
    windowed          boolean not null default false,
    queue             text not null,
    task              text not null,
    payload           json not null,  -- json, not jsonb: the text is returned unchanged, as SQLite does
    token             uuid,
    started_at        timestamptz,
    expires_at        timestamptz,
    renewed_at        timestamptz,  -- null: not renewed since the claim
    stopped_at        timestamptz,
    lease             double precision,
    worker            text,
    wait              text,
    target            text,
    group_key         text,  -- groups jobs, in a queue that is shared or limited by group
    unique_key        text,
    request           text,
    policy            json,  -- null: the default policy
    progress          json,  -- the handler's last report
    error             text,
    awaits            text,  -- the signal that it waits for
    context           text,  -- context that the producer attached, as JSON
    constraint jobs_consistent check ({schema}.is_consistent(
        state, attempt, max_attempts, losses, suspect, waits, priority, rank, holds, target, wait, worker, token,
        request, started_at, expires_at, stopped_at))
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0,
        autovacuum_analyze_scale_factor = 0.1, autovacuum_analyze_threshold = 1000);

-- Few, partial and narrow indexes: each further index on this table costs every job.
create index jobs_claim on {schema}.jobs (queue, suspect, rank, seq) where state = 'queued';
-- For claims that must not scan jobs of unknown tasks. The collation distinguishes it from jobs_claim: the planner
-- does not know about such jobs, and would choose that index.
create index jobs_tasks on {schema}.jobs (queue collate "C", task collate "C", suspect, rank, seq)
    where state = 'queued';
create index jobs_suspect on {schema}.jobs (queue, suspect) where state = 'queued' and suspect > 0;
create index jobs_group on {schema}.jobs (queue, suspect, group_key, rank, seq) where state = 'queued'
    and group_key is not null;
create index jobs_due on {schema}.jobs (run_at, seq) where wait = 'time';
create index jobs_line on {schema}.jobs (target, seq) where wait = 'target';
-- Not by state: the planner must not pick this index for settles.
create index jobs_leased on {schema}.jobs (expires_at) where expires_at is not null;
create unique index jobs_holder on {schema}.jobs (target) where holds;
create unique index jobs_chain on {schema}.jobs (chain) where position > 0;
create index jobs_failed on {schema}.jobs (stopped_at) where state = 'failed';

-- The columns that a row keeps when it moves to `finished`.
-- {kept}: id, chain, created_at, run_at, attempt, max_attempts, version, "position", priority, queue, task, payload,
--     started_at, renewed_at, worker, target, group_key, unique_key, context

-- Partitioned by ranges of the id, which contains its time: `get` reads one partition, pruning drops whole partitions.
create table {schema}.finished (
    id            uuid not null primary key,
    chain         uuid not null,
    created_at    timestamptz not null,
    run_at        timestamptz not null,
    finished_at   timestamptz not null,
    attempt       integer not null,
    max_attempts  integer not null,
    losses        integer not null,
    version       integer not null,
    position      integer not null,
    state         {schema}.job_state not null check (state in ('succeeded', 'cancelled')),
    priority      smallint not null,
    continued     boolean not null default false,
    queue         text not null,
    task          text not null,
    payload       json not null,
    token         uuid,
    started_at    timestamptz,
    renewed_at    timestamptz,
    worker        text,
    target        text,
    group_key     text,
    unique_key    text,
    result        json,
    error         text,
    context       text
) partition by range (id);
create index finished_chain on {schema}.finished (chain) where position > 0;

-- Unique keys. `until` null: taken while the job is live; else until that moment, whatever happens to the job.
create table {schema}.keys (
    key    text primary key,
    job    uuid not null,
    until  timestamptz
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

create index keys_window on {schema}.keys (until) where until is not null;

-- Dependencies between jobs. `state` null: not yet resolved. Result and task are copies: that chain may be pruned.
create table {schema}.dependencies (
    job         uuid not null,
    depends_on  uuid not null,  -- a chain
    position    integer not null,
    state       text check (state in ('succeeded', 'failed', 'cancelled', 'deleted')),
    result      json,
    task        text,  -- of the first job of that chain; null until resolved, or if that job was deleted
    primary key (job, depends_on)
);
create index dependencies_open on {schema}.dependencies (depends_on, job) where state is null;

-- Attempts that did not succeed; a successful one is recorded by the finished row itself.
create table {schema}.attempts (
    job         uuid not null,
    version     integer not null,
    attempt     integer not null,
    worker      text not null,
    started_at  timestamptz not null,
    ended_at    timestamptz not null,
    renewed_at  timestamptz,
    expires_at  timestamptz,
    outcome     text not null,
    error       text,
    primary key (job, version)
);

-- Durable steps of a handler, by name: completed steps with their results, and the times that it waits for.
create table {schema}.steps (
    job      uuid not null,
    kind     text not null check (kind in ('step', 'sleep', 'wait', 'missed')),
    name     text not null,
    result   json,
    until    timestamptz,
    done_at  timestamptz not null,
    primary key (job, kind, name)
);

-- Signals sent to a job; the first of each name counts.
create table {schema}.signals (
    job      uuid not null,
    name     text not null,
    value    json,
    sent_at  timestamptz not null,
    primary key (job, name)
);

-- Nudges: each says that a waiting job may be able to run now. Only promote deletes them. `beyond`: if a nudge
-- concerns many jobs, those up to this one have been processed.
create table {schema}.nudges (
    id      bigint generated always as identity primary key,
    kind    text not null check (kind in ('target', 'job', 'chain', 'signal')),
    key     text not null,
    beyond  uuid
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

-- Settings of a queue that operators have made; '*' stands for all queues together.
create table {schema}.queues (
    queue        text primary key,
    paused       boolean not null default false,
    max_running  integer check (max_running >= 0),
    fair         boolean not null default false,  -- groups are served in turn
    rated        boolean not null default false,  -- the queue has rates
    by_group     boolean not null default false,  -- the group of a job matters: a job without one gets the group ''
    last_group   text,  -- the group that was served last
    limited      boolean not null generated always as (max_running is not null or fair or rated) stored
) with (fillfactor = 50);

-- Rates: how many jobs may start within a period. Group '': for the whole queue; '*': for each group separately; else
-- for that group.
create table {schema}.rates (
    queue      text not null,
    group_key  text not null,
    rate       integer not null check (rate >= 0),
    per        double precision not null check (per > 0),
    primary key (queue, group_key)
);

-- When jobs of queues with a rate were started: one row for each time and group.
create table {schema}.starts (
    queue      text not null,
    group_key  text not null,
    at         timestamptz not null,
    number     integer not null,
    primary key (queue, group_key, at)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
create index starts_latest on {schema}.starts (queue, at);

-- Schedules. `definition`: what is enqueued and when, as JSON; `declared`: the definition that code last declared.
create table {schema}.schedules (
    name        text primary key,
    task        text not null,
    definition  json not null,
    declared    json,
    paused      boolean not null default false,
    next_at     timestamptz,  -- null: no further tick
    moved_at    timestamptz not null,  -- when next_at was computed
    changed_at  timestamptz not null
);
create index schedules_due on {schema}.schedules (next_at) where not paused;

-- Ticks of schedules: the worker that inserts the row enqueues the job. `job` null: none was enqueued; `note` says why.
create table {schema}.ticks (
    schedule  text not null,
    tick      timestamptz not null,
    job       uuid,
    note      text,
    primary key (schedule, tick)
);
create index ticks_age on {schema}.ticks (tick);
create index ticks_jobs on {schema}.ticks (schedule, tick) where job is not null;

-- Workers, by their last reports. A worker that stops in an orderly way deletes its row.
create table {schema}.workers (
    name        text primary key,
    host        text not null,
    pid         integer not null,
    about       json not null,  -- its queues, slots, tasks, lease and version
    running     integer not null,
    stopping    boolean not null,
    report      uuid not null,  -- id of its last report: a repeated report is counted once
    started_at  timestamptz not null,
    seen_at     timestamptz not null
) with (fillfactor = 50);

-- Counts of events in steps of 60, 600, 3600 and 21600 seconds, coarser for older events; step 0 is the total of all
-- time. Counts of all queues together are stored beside them: as queue *, with negative steps.
create table {schema}.stats (
    step    integer not null,
    at      timestamptz not null,
    queue   text not null,
    name    text not null,
    bucket  smallint not null,  -- of the histogram
    peak    boolean not null,  -- the maximum is kept, not the sum
    number  double precision not null,
    primary key (step, at, queue, name, bucket)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

-- How many live jobs each queue had when they were last counted: used where there are too many to count at each
-- request.
create table {schema}.queue_samples (
    queue        text primary key,
    pending      bigint not null,
    queued       bigint not null,
    running      bigint not null,
    paused_jobs  bigint not null,
    failed       bigint not null,
    oldest       double precision,  -- for how many seconds the oldest queued job had been due
    counted_at   timestamptz not null
) with (fillfactor = 50);

-- The audit trail: actions of clients that named an actor.
create table {schema}.audit (
    seq      bigint generated always as identity primary key,
    id       uuid not null unique,  -- made by the client: a retried action is recorded once
    at       timestamptz not null,
    who      text not null,
    what     text not null,
    subject  text not null,
    detail   json
);

-- Changes that clients made, by operation id: a retry finds the answer here. Pruned after a day.
create table {schema}.operations (
    id       uuid primary key,
    verb     text not null,
    subject  text not null,
    request  text,  -- fingerprint of the request behind an idempotency key
    outcome  json,  -- the answer, without payload or result
    at       timestamptz not null
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
create index operations_age on {schema}.operations (at);

-- Web sessions that were signed out, by their hash, until they would have expired anyway.
create table {schema}.ended_sessions (
    id     text primary key,
    until  timestamptz not null
);
create index ended_sessions_until on {schema}.ended_sessions (until);

-- One row. touched_at: when maintenance last reached the store; grace_until: no worker reaps before that time.
create table {schema}.pulse (
    single       boolean primary key default true check (single),
    touched_at   timestamptz not null default '-infinity',
    grace_until  timestamptz not null default '-infinity'
) with (fillfactor = 10);
insert into {schema}.pulse default values;

-- One row. armed_until: until then a worker sleeps and needs notifications.
create table {schema}.arming (
    single       boolean primary key default true check (single),
    armed_until  timestamptz not null default '-infinity'
) with (fillfactor = 10);
insert into {schema}.arming default values;

-- One row: the worker that may drain itself for a job that must run alone, and until when it may keep its free slots
-- empty.
create table {schema}.quarantine (
    single  boolean primary key default true check (single),
    worker  text,
    until   timestamptz not null default '-infinity'
) with (fillfactor = 10);
insert into {schema}.quarantine default values;

-- Rows to lock, so that one promoter (or partition maker) works at a time. `until`: for work of more than one
-- transaction.
create table {schema}.locks (
    name   text primary key,
    until  timestamptz not null default '-infinity'
);
insert into {schema}.locks (name) values ('promote'), ('partitions'), ('prune');

-- Views for reading: the jobs of each table, and of both together. `create or replace view` can add columns only at the
-- end.
create view {schema}.live_jobs as
    select state, wait, losses, token, holds, waits, expires_at, request, awaits, policy, progress, error,
           null::json as result, false as continued, stopped_at as finished_at, {kept}
    from {schema}.jobs;
create view {schema}.over_jobs as
    select state, null::text as wait, losses, token, false as holds, 0 as waits, null::timestamptz as expires_at,
           null::text as request, null::text as awaits, null::json as policy, null::json as progress, error, result,
           continued, finished_at, {kept}
    from {schema}.finished;
create view {schema}.all_jobs as select * from {schema}.live_jobs union all select * from {schema}.over_jobs;

-- The smallest id of a given time: the bound of a partition.
create function {schema}.first_id(moment timestamptz) returns uuid language sql immutable as $$
    select (lpad(to_hex((extract(epoch from moment) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid
$$;

-- The id at which a scan of so many jobs, newest first, ends. The planner knows neither number, and would sort a
-- million rows rather than scan ten thousand index entries: the settings leave it no choice.
create function {schema}.reached_live(lowest uuid, before uuid, scan integer) returns uuid
language sql stable set search_path = pg_catalog, pg_temp
    set enable_seqscan = off set enable_sort = off set enable_bitmapscan = off as $$
    select id from {schema}.jobs where id >= lowest and id < before order by id desc offset scan - 1 limit 1
$$;
create function {schema}.reached_over(lowest uuid, before uuid, scan integer) returns uuid
language sql stable set search_path = pg_catalog, pg_temp
    set enable_seqscan = off set enable_sort = off set enable_bitmapscan = off as $$
    select id from {schema}.finished where id >= lowest and id < before order by id desc offset scan - 1 limit 1
$$;
create function {schema}.newest_jobs(most integer) returns table (queue text, state text, run_at timestamptz)
language sql stable set search_path = pg_catalog, pg_temp
    set enable_seqscan = off set enable_sort = off set enable_bitmapscan = off as $$
    select queue, state::text, run_at from {schema}.jobs order by id desc limit most
$$;

-- Partitions of `finished`, one for each day (UTC), created as tables, then attached: neither step blocks readers or
-- writers.
create function {schema}.attach_partition(day date) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    execute format('alter table {schema}.finished attach partition {schema}.%I for values from (%L) to (%L)',
        'finished_' || to_char(day, 'YYYYMMDD'), {schema}.first_id(day::timestamp at time zone 'UTC'),
        {schema}.first_id((day + 1)::timestamp at time zone 'UTC'));
end $$;

create function {schema}.make_partitions(first_day date, last_day date) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    day      date;
    part     text;
    pending  boolean;
    made     integer := 0;
begin
    perform 1 from {schema}.locks where name = 'partitions' for update;
    for day in select generate_series(first_day::timestamp, last_day::timestamp, interval '1 day')::date loop
        part := 'finished_' || to_char(day, 'YYYYMMDD');
        select i.inhdetachpending into pending from pg_inherits i
        where i.inhrelid = to_regclass(format('{schema}.%I', part)) and i.inhparent = '{schema}.finished'::regclass;
        continue when pending is false;
        if pending then  -- pruning was interrupted during the detach
            execute format('alter table {schema}.finished detach partition {schema}.%I finalize', part);
        end if;
        execute format(
            'create table if not exists {schema}.%I (like {schema}.finished including defaults including constraints)',
            part);
        perform {schema}.attach_partition(day);
        made := made + 1;
    end loop;
    return made;
end $$;
-- Drop the partition of a day, attached or not, if every job in it ended so many seconds ago and no waiting job
-- depends on it; else leave it, or attach it again. Dropping an attached one needs a lock behind which all settles
-- would wait: it is taken almost at once, or not at all. The owner of the tables detaches the partition first.
create function {schema}.drop_partition(day date, seconds double precision) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    part     text := 'finished_' || to_char(day, 'YYYYMMDD');
    low      uuid := {schema}.first_id(day::timestamp at time zone 'UTC');
    high     uuid := {schema}.first_id((day + 1)::timestamp at time zone 'UTC');
    pending  boolean;
    needed   boolean;
begin
    perform set_config('lock_timeout', '5s', true);
    perform 1 from {schema}.locks where name = 'partitions' for update;
    if to_regclass(format('{schema}.%I', part)) is null then
        return false;
    end if;
    select i.inhdetachpending into pending from pg_inherits i
    where i.inhrelid = to_regclass(format('{schema}.%I', part)) and i.inhparent = '{schema}.finished'::regclass;
    if pending then
        execute format('alter table {schema}.finished detach partition {schema}.%I finalize', part);
        pending := null;
    elsif pending is false then
        perform set_config('lock_timeout', '50ms', true);
        lock table {schema}.finished in access exclusive mode;
    end if;
    execute format('select exists (select from {schema}.jobs where id >= $1 and id < $2)
        or exists (select from {schema}.%1$I where finished_at >= statement_timestamp() - make_interval(secs => $3))
        or exists (select from {schema}.dependencies d join {schema}.%1$I f on f.chain = d.depends_on
            where d.state is null)',
        part)
    into needed using low, high, seconds;
    if not needed then
        execute format('drop table {schema}.%I', part);
    elsif pending is null then
        perform {schema}.attach_partition(day);
    end if;
    return not needed;
end $$;
select {schema}.make_partitions((statement_timestamp() at time zone 'UTC')::date - 1,
                                (statement_timestamp() at time zone 'UTC')::date + 7);

-- Take a unique key for the candidate, and return the job that has it then: the candidate, if no job had the key, if
-- the holder's window is over, or if the holder is its predecessor. A key that another job keeps is read, not locked.
-- Callers take one key at a time: a transaction that waits for a key which is being taken has locked only keys that
-- sort before it. The clock is read again after each wait, unless `given` is the time.
create function {schema}.take_key(wanted text, candidate uuid, heir_of uuid, seconds double precision,
    given timestamptz)
returns uuid language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    holder  uuid;
    ends    timestamptz;
    moment  timestamptz := given;
begin
    for attempt in 1..1000 loop
        if given is null then
            moment := clock_timestamp();
        end if;
        insert into {schema}.keys (key, job, until) values (wanted, candidate, moment + make_interval(secs => seconds))
        on conflict (key) do nothing;
        if found then
            return candidate;
        end if;
        select k.job, k.until into holder, ends from {schema}.keys k where k.key = wanted;
        continue when not found;  -- the key was released meanwhile
        if given is null then
            moment := clock_timestamp();
        end if;
        if holder = candidate then
            -- Its job may have been deleted and is enqueued again: pruning must not delete the key before that is
            -- committed.
            perform 1 from {schema}.keys k where k.key = wanted and k.job = candidate for update;
            continue when not found;
            return candidate;
        end if;
        if (holder is distinct from heir_of and case
            when ends is not null then ends > moment
            -- A job that ends releases its key, unless another transaction has locked the key then: such a key is void.
            else exists (select from {schema}.jobs j where j.id = holder and j.state <> 'failed')
        end) then
            return holder;
        end if;
        update {schema}.keys k
        set job = candidate, until = moment + make_interval(secs => seconds)
        where k.key = wanted and k.job = holder and k.until is not distinct from ends;
        if found then
            return candidate;
        end if;
    end loop;
    raise serialization_failure using message = format('relet: unique key %L changes hands too often', wanted);
end $$;

-- Valid targets, keys and unique keys: text of 1 to 512 characters, without control, format and private-use
-- characters, and without spaces other than U+0020. (Characters that Unicode has not assigned are accepted: they
-- differ between Pythons.)
create function {schema}.is_printable(value text) returns boolean
    language sql immutable set search_path = pg_catalog, pg_temp as $$
    select length(value) between 1 and 512 and value !~ ('['
        || '\u0001-\u001f\u007f-\u00a0\u00ad\u0600-\u0605\u061c\u06dd\u070f\u0890-\u0891\u08e2\u1680\u180e'
        || '\u2000-\u200f\u2028-\u202f'
        || '\u205f-\u2064\u2066-\u206f\u3000\ue000-\uf8ff\ufdd0-\ufdef\ufeff\ufff9-\ufffb\ufffe-\uffff'
        || '\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a'
        || '\U000e0001\U000e0020-\U000e007f\U000f0000-\U0010ffff'
        || ']')
$$;

-- The error in a payload, or null. Numbers are checked in the text, as jsonb does not distinguish 1e300 from an
-- integer.
create function {schema}.payload_problem(payload json) returns text
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
declare
    number  text[];
begin
    if payload is null or json_typeof(payload) <> 'object' then
        return 'must be an object of the task''s arguments by name';
    elsif octet_length(payload::text) > 262144 then
        return 'is larger than 262144 bytes';
    elsif jsonb_path_exists(payload::jsonb, '$.**{64}') then  -- the cast rejects NUL characters and lone surrogates
        return 'is nested deeper than 64';
    elsif payload::text ~ '[0-9]{19}|[0-9][eE][+]?[0-9]{3}' then
        for number in select regexp_matches(regexp_replace(payload::text, '"(\\.|[^"\\])*"', '""', 'g'),
            '(-?[0-9]+)([.eE][-+.eE0-9]*)?', 'g') loop
            if number[2] is null and number[1]::numeric not between -9223372036854775808 and 9223372036854775807 then
                return 'has an integer of more than 64 bits; pass it as a string';
            elsif abs((number[1] || coalesce(number[2], ''))::numeric) > 1.7976931348623157e308 then
                return 'has a number that is too large';
            end if;
        end loop;
    end if;
    return null;
end $$;

-- The limits of these queues, and of all together ('*'), with the number of jobs running. Their rows are locked first.
-- Running jobs are counted in a later statement, which sees what was committed while this one waited; only where such
-- a limit is set, and by an index scan, as a bitmap scan would visit rows that are settled and not yet vacuumed, again
-- and again.
create function {schema}.lock_limits(names text[])
returns table (queue text, max_running integer, fair boolean, rated boolean, last_group text, running bigint)
language plpgsql set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
#variable_conflict use_column
begin
    perform from {schema}.queues q where q.limited and (q.queue = '*' or q.queue = any(names)) order by q.queue
        for update;
    return query
    with limits as materialized (
        select q.queue, q.max_running, q.fair, q.rated, q.last_group from {schema}.queues q
        where q.limited and (q.queue = '*' or q.queue = any(names))
    ),
    running as materialized (
        select j.queue, count(*) as number from {schema}.jobs j
        where j.expires_at between '-infinity' and 'infinity'
          and exists (select from limits l where l.max_running is not null)
        group by j.queue
    )
    select l.queue, l.max_running, l.fair, l.rated, l.last_group,
           (select coalesce(sum(r.number), 0)::bigint from running r where l.queue in (r.queue, '*'))
    from limits l
    order by l.queue;
end $$;

-- succeed_plain: running -> succeeded, for jobs without a follower. `ids` are sorted and unique, and `tokens` have the
-- same order: so one scan of the primary key finds the rows, and a binary search finds each token. Returns how many
-- jobs were still leased by these tokens, and whether any job waited for one of them, or one occupied its target. The
-- settings fix the plan, whatever the statistics are, also behind a pooler: a plan made for these ids would expect one
-- job to be running, and read all of them.
create function {schema}.succeed_plain(ids uuid[], tokens uuid[], results text[], moment timestamptz)
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
           array_agg(unique_key) filter (where unique_key is not null)
    into total, targets, chains, keyed, unkeyed
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
    return query select total, chains is not null, targets is not null;
end $$;

-- For triggers and other languages: does the same as the client's enqueue, with the checks that SQL can make. Returns
-- the id of the job; if the id or the unique key exists already, that of the existing job. A role that may only
-- enqueue needs usage of the schema and execute on this function.
create function {schema}.enqueue(
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
    perform pg_notify({jobs_channel}, '') from {schema}.arming where armed_until > statement_timestamp();
    return new_id;
end $$;
-- These functions run with the rights of their owner.
revoke all on function {schema}.enqueue, {schema}.make_partitions, {schema}.drop_partition from public;
