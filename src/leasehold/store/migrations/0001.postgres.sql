-- The first schema. `jobs` holds what is not over, and stays small; `finished` holds the rest.

create sequence {schema}.job_seq;

create table {schema}.jobs (
    id            uuid primary key,
    seq           bigint not null default nextval('{schema}.job_seq'),  -- order among equals; identity is the id
    state         text not null check (state in ('pending', 'queued', 'running', 'paused', 'failed')),
    wait          text check (wait in ('jobs', 'time', 'target')),
    queue         text not null,
    task          text not null,
    priority      smallint not null check (priority between -100 and 100),
    rank          smallint not null generated always as (-priority) stored,  -- so that (rank, seq) has one direction
    target        text,
    holds         boolean not null default false,
    payload       json not null,  -- json, not jsonb: the text comes back as it went in, as it does from SQLite
    run_at        timestamptz not null,
    attempt       integer not null default 0,
    max_attempts  integer not null check (max_attempts >= 1),
    losses        integer not null default 0 check (losses >= 0),
    suspect       boolean not null generated always as (losses > 0) stored,
    version       integer not null default 0,
    policy        json,  -- null: the default policy
    lease         double precision,
    worker        text,
    token         uuid,
    expires_at    timestamptz,
    started_at    timestamptz,
    alone         boolean not null default false,
    request       text check (request in ('cancel', 'pause')),
    error         text,
    chain         uuid not null,
    position      integer not null default 0,
    waits         integer not null default 0 check (waits >= 0),
    watched       boolean not null default false,
    unique_key    text,
    windowed      boolean not null default false,
    created_at    timestamptz not null,
    stopped_at    timestamptz,
    constraint running_is_leased check (
        (state = 'running') = (worker is not null)
        and (state = 'running') = (expires_at is not null)
        and (state = 'running') = (started_at is not null)
        and (state <> 'running' or token is not null)),
    constraint pending_waits check ((state = 'pending') = (wait is not null)),
    constraint request_is_for_running check (request is null or state = 'running'),
    constraint holder_has_target check (target is not null or not holds),
    constraint target_is_held check (target is null or holds or state not in ('queued', 'running')),
    constraint attempts_in_bounds check (attempt between 0 and max_attempts and (state <> 'queued' or attempt < max_attempts)),
    constraint stopped_has_moment check ((state in ('paused', 'failed')) = (stopped_at is not null))
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0,
        autovacuum_analyze_scale_factor = 0.1, autovacuum_analyze_threshold = 1000);

-- Few, partial, narrow: each further index on this table costs every job.
create index jobs_claim on {schema}.jobs (queue, suspect, rank, seq) where state = 'queued';
create index jobs_due on {schema}.jobs (run_at) where wait = 'time';
create index jobs_line on {schema}.jobs (target, seq) where wait = 'target';
create index jobs_leased on {schema}.jobs (expires_at) where state = 'running';
create unique index jobs_holder on {schema}.jobs (target) where holds;
create unique index jobs_chain on {schema}.jobs (chain) where position > 0;
create index jobs_failed on {schema}.jobs (stopped_at) where state = 'failed';

-- By ranges of the id, which carries its time: `get` touches one partition, pruning drops whole ones.
create table {schema}.finished (
    id            uuid not null primary key,
    state         text not null check (state in ('succeeded', 'cancelled')),
    queue         text not null,
    task          text not null,
    priority      smallint not null,
    target        text,
    payload       json not null,
    result        json,
    error         text,
    attempt       integer not null,
    max_attempts  integer not null,
    losses        integer not null,
    version       integer not null,
    worker        text,
    token         uuid,
    chain         uuid not null,
    position      integer not null,
    continued     boolean not null default false,
    unique_key    text,
    created_at    timestamptz not null,
    run_at        timestamptz not null,
    started_at    timestamptz,
    finished_at   timestamptz not null
) partition by range (id);
create index finished_chain on {schema}.finished (chain) where position > 0;

-- Unique keys. `until` null: while the job lives; else until that moment, whatever becomes of the job.
create table {schema}.keys (
    key    text primary key,
    job    uuid not null,
    until  timestamptz
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

create index keys_window on {schema}.keys (until) where until is not null;

-- What a job waits for. `state` null: not yet decided. The result is a copy: the blocker may be pruned.
create table {schema}.edges (
    job       uuid not null,
    blocker   uuid not null,  -- a chain
    position  integer not null,
    state     text check (state in ('succeeded', 'failed', 'cancelled', 'deleted')),
    result    json,
    primary key (job, blocker)
);
create index edges_open on {schema}.edges (blocker) where state is null;

-- Attempts that ended otherwise than by success; a successful one is the finished row itself.
create table {schema}.attempts (
    job         uuid not null,
    version     integer not null,
    attempt     integer not null,
    worker      text not null,
    started_at  timestamptz not null,
    ended_at    timestamptz not null,
    outcome     text not null,
    error       text,
    primary key (job, version)
);

-- Notes that something waiting may be free now. Only promote takes them away.
create table {schema}.nudges (
    id    bigint generated always as identity primary key,
    kind  text not null check (kind in ('target', 'after', 'chain')),
    key   text not null
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

-- What people have said of a queue; '*' stands for all of them together.
create table {schema}.queues (
    queue        text primary key,
    paused       boolean not null default false,
    max_running  integer check (max_running >= 0)
);

-- One row. touched_at: when upkeep last reached the store; grace_until: nobody reaps before.
create table {schema}.pulse (
    single       boolean primary key default true check (single),
    touched_at   timestamptz not null default '-infinity',
    grace_until  timestamptz not null default '-infinity'
) with (fillfactor = 10);
insert into {schema}.pulse default values;

-- One row. armed_until: a worker sleeps and wants to be notified.
create table {schema}.arming (
    single       boolean primary key default true check (single),
    armed_until  timestamptz not null default '-infinity'
) with (fillfactor = 10);
insert into {schema}.arming default values;

-- Rows to lock, so that one promoter (or partition maker) works at a time.
create table {schema}.locks (name text primary key);
insert into {schema}.locks values ('promote'), ('partitions');

-- Jobs of both tables, for reading.
create view {schema}.all_jobs as
    select id, state, wait, queue, task, priority, target, holds, payload, null::json as result, error, attempt,
           max_attempts, losses, version, worker, token, expires_at, request, chain, position, false as continued,
           unique_key, waits, policy, created_at, run_at, started_at, stopped_at as finished_at
    from {schema}.jobs
    union all
    select id, state, null, queue, task, priority, target, false, payload, result, error, attempt,
           max_attempts, losses, version, worker, token, null, null, chain, position, continued,
           unique_key, 0, null, created_at, run_at, started_at, finished_at
    from {schema}.finished;

-- The smallest id of a moment: the bound of a partition.
create function {schema}.first_id(moment timestamptz) returns uuid language sql immutable as $$
    select (lpad(to_hex((extract(epoch from moment) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid
$$;

-- Partitions of `finished`, one for each day (UTC), made standalone and attached: neither step blocks a reader or writer.
create function {schema}.make_partitions(first_day date, last_day date) returns integer
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    day   date;
    part  text;
    made  integer := 0;
begin
    perform 1 from {schema}.locks where name = 'partitions' for update;
    for day in select generate_series(first_day::timestamp, last_day::timestamp, interval '1 day')::date loop
        part := 'finished_' || to_char(day, 'YYYYMMDD');
        continue when to_regclass(format('{schema}.%I', part)) is not null;
        execute format('create table {schema}.%I (like {schema}.finished including defaults including constraints)', part);
        execute format('alter table {schema}.finished attach partition {schema}.%I for values from (%L) to (%L)', part,
            {schema}.first_id(day::timestamp at time zone 'UTC'), {schema}.first_id((day + 1)::timestamp at time zone 'UTC'));
        made := made + 1;
    end loop;
    return made;
end $$;
select {schema}.make_partitions((statement_timestamp() at time zone 'UTC')::date - 1,
                                (statement_timestamp() at time zone 'UTC')::date + 7);
