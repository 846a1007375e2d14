-- The first schema. `jobs` holds what is not over, and stays small; `finished` holds the rest. Times are seconds since 1970.

create table {schema}.jobs (
    id            text primary key not null,
    seq           integer not null,  -- order among equals; identity is the id
    state         text not null check (state in ('pending', 'queued', 'running', 'paused', 'failed')),
    wait          text check (wait in ('jobs', 'time', 'target')),
    queue         text not null,
    task          text not null,
    priority      integer not null check (priority between -100 and 100),
    rank          integer not null generated always as (-priority) stored,
    target        text,
    holds         integer not null default 0,
    payload       text not null check (json_valid(payload)),
    run_at        real not null,
    attempt       integer not null default 0,
    max_attempts  integer not null check (max_attempts >= 1),
    losses        integer not null default 0 check (losses >= 0),
    suspect       integer not null generated always as (min(losses, 2)) stored,  -- 2: to be run alone
    version       integer not null default 0,
    policy        text,  -- null: the default policy
    lease         real,
    worker        text,
    token         text,
    expires_at    real,
    started_at    real,
    alone         integer not null default 0,
    request       text check (request in ('cancel', 'pause')),
    progress      text,  -- what the handler said last
    error         text,
    chain         text not null,
    position      integer not null default 0,
    waits         integer not null default 0 check (waits >= 0),
    watched       integer not null default 0,
    unique_key    text,
    windowed      integer not null default 0,
    created_at    real not null,
    stopped_at    real,
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
);

create index {schema}.jobs_claim on {schema}.jobs (queue, suspect, rank, seq) where state = 'queued';
create index {schema}.jobs_due on {schema}.jobs (run_at, seq) where wait = 'time';
create index {schema}.jobs_line on {schema}.jobs (target, seq) where wait = 'target';
create index {schema}.jobs_leased on {schema}.jobs (expires_at) where expires_at is not null;
create unique index {schema}.jobs_holder on {schema}.jobs (target) where holds;
create unique index {schema}.jobs_chain on {schema}.jobs (chain) where position > 0;
create index {schema}.jobs_failed on {schema}.jobs (stopped_at) where state = 'failed';

create table {schema}.finished (
    id            text primary key not null,
    state         text not null check (state in ('succeeded', 'cancelled')),
    queue         text not null,
    task          text not null,
    priority      integer not null,
    target        text,
    payload       text not null,
    result        text,
    error         text,
    attempt       integer not null,
    max_attempts  integer not null,
    losses        integer not null,
    version       integer not null,
    worker        text,
    token         text,
    chain         text not null,
    position      integer not null,
    continued     integer not null default 0,
    unique_key    text,
    created_at    real not null,
    run_at        real not null,
    started_at    real,
    finished_at   real not null
);
create index {schema}.finished_chain on {schema}.finished (chain) where position > 0;
create index {schema}.finished_age on {schema}.finished (finished_at);  -- what partitions are for elsewhere: pruning by age

-- Unique keys. `until` null: while the job lives; else until that moment, whatever becomes of the job.
create table {schema}.keys (
    key    text primary key not null,
    job    text not null,
    until  real
);

create index {schema}.keys_window on {schema}.keys (until) where until is not null;

-- What a job waits for. `state` null: not yet decided. Result and task are copies: the blocker may be pruned.
create table {schema}.edges (
    job       text not null,
    blocker   text not null,  -- a chain
    position  integer not null,
    state     text check (state in ('succeeded', 'failed', 'cancelled', 'deleted')),
    result    text,
    task      text,  -- of the blocker's first job; null until decided, or if that is gone
    primary key (job, blocker)
);
create index {schema}.edges_open on {schema}.edges (blocker, job) where state is null;

-- Attempts that ended otherwise than by success; a successful one is the finished row itself.
create table {schema}.attempts (
    job         text not null,
    version     integer not null,
    attempt     integer not null,
    worker      text not null,
    started_at  real not null,
    ended_at    real not null,
    outcome     text not null,
    error       text,
    primary key (job, version)
);

-- Notes that something waiting may be free now. Only promote takes them away. `beyond`: of many that a note concerns those
-- up to here are done.
create table {schema}.nudges (
    id      integer primary key autoincrement,
    kind    text not null check (kind in ('target', 'after', 'chain')),
    key     text not null,
    beyond  text
);

-- What people have said of a queue; '*' stands for all of them together.
create table {schema}.queues (
    queue        text primary key not null,
    paused       integer not null default 0,
    max_running  integer check (max_running >= 0)
);

-- One row. touched_at: when upkeep last reached the store; grace_until: nobody reaps before.
create table {schema}.pulse (
    single       integer primary key check (single = 1),
    touched_at   real not null default 0,
    grace_until  real not null default 0
);
insert into {schema}.pulse (single) values (1);

-- One row: the last number given out for jobs.seq.
create table {schema}.sequence (
    single  integer primary key check (single = 1),
    last    integer not null
);
insert into {schema}.sequence values (1, 0);

-- Jobs of both tables, for reading.
create view {schema}.all_jobs as
    select id, state, wait, queue, task, priority, target, holds, payload, null as result, error, attempt,
           max_attempts, losses, version, worker, token, expires_at, request, chain, position, 0 as continued,
           unique_key, waits, policy, progress, created_at, run_at, started_at, stopped_at as finished_at
    from {schema}.jobs
    union all
    select id, state, null, queue, task, priority, target, 0, payload, result, error, attempt,
           max_attempts, losses, version, worker, token, null, null, chain, position, continued,
           unique_key, 0, null, null, created_at, run_at, started_at, finished_at
    from {schema}.finished;
