-- The first schema. `jobs` holds jobs that have not ended, and stays small; `finished` holds those that have. Times
-- are seconds since 1970.
-- oldest: 1

create table {schema}.jobs (
    id                text primary key not null,
    seq               integer not null,  -- the order of jobs with equal rank; the id identifies a job
    state             text not null check (state in ('pending', 'queued', 'running', 'paused', 'failed')),
    wait              text check (wait in ('jobs', 'time', 'target')),
    queue             text not null,
    task              text not null,
    priority          integer not null check (priority between -100 and 100),
    rank              integer not null,  -- minus the priority, so that (rank, seq) sorts in one direction
    target            text,
    group_key         text,  -- groups jobs, in a queue that is shared or limited by group
    holds             integer not null default 0,
    payload           text not null check (json_valid(payload)),
    run_at            real not null,
    attempt           integer not null default 0,
    max_attempts      integer not null check (max_attempts >= 1),
    losses            integer not null default 0 check (losses >= 0),
    suspect           integer not null default 0,  -- its losses, at most 2; 2: run it alone
    version           integer not null default 0,
    policy            text,  -- null: the default policy
    lease             real,
    worker            text,
    token             text,
    expires_at        real,
    renewed_at        real,  -- null: not renewed since the claim
    started_at        real,
    alone             integer not null default 0,
    request           text check (request in ('cancel', 'pause')),
    progress          text,  -- the handler's last report
    error             text,
    chain             text not null,
    position          integer not null default 0,
    waits             integer not null default 0 check (waits >= 0),
    dependency_count  integer not null default 0,  -- how many jobs it had to wait for when it was enqueued
    awaits            text,  -- the signal that it waits for
    context           text,  -- context that the producer attached, as JSON
    watched           integer not null default 0,
    unique_key        text,
    windowed          integer not null default 0,
    created_at        real not null,
    stopped_at        real,
    constraint rank_is_of_priority check (rank = -priority),
    constraint suspect_is_of_losses check (suspect = min(losses, 2)),
    constraint running_is_leased check (
        (state = 'running') = (worker is not null)
        and (state = 'running') = (expires_at is not null)
        and (state = 'running') = (started_at is not null)
        and (state <> 'running' or token is not null)),
    constraint pending_waits check (  -- a paused job keeps its position in the target's queue
        (state = 'pending') = (wait is not null) or (state = 'paused' and wait = 'target' and not holds)),
    constraint request_is_for_running check (request is null or state = 'running'),
    constraint holder_has_target check (target is not null or not holds),
    constraint target_is_held check (target is null or holds or state not in ('queued', 'running')),
    constraint attempts_in_bounds check (
        attempt between 0 and max_attempts and (state <> 'queued' or attempt < max_attempts)),
    constraint stopped_has_moment check ((state in ('paused', 'failed')) = (stopped_at is not null))
);

create index {schema}.jobs_claim on {schema}.jobs (queue, suspect, rank, seq) where state = 'queued';
create index {schema}.jobs_tasks on {schema}.jobs (queue, task, suspect, rank, seq) where state = 'queued';
create index {schema}.jobs_suspect on {schema}.jobs (queue, suspect) where state = 'queued' and suspect > 0;
create index {schema}.jobs_group on {schema}.jobs (queue, suspect, group_key, rank, seq)
    where state = 'queued' and group_key is not null;
create index {schema}.jobs_due on {schema}.jobs (run_at, seq) where wait = 'time';
create index {schema}.jobs_line on {schema}.jobs (target, seq) where wait = 'target';
create index {schema}.jobs_leased on {schema}.jobs (expires_at) where expires_at is not null;
create unique index {schema}.jobs_holder on {schema}.jobs (target) where holds;
create unique index {schema}.jobs_chain on {schema}.jobs (chain) where position > 0;
create index {schema}.jobs_failed on {schema}.jobs (stopped_at) where state = 'failed';

-- The columns that a row keeps when it moves to `finished`.
-- {kept}: id, chain, created_at, run_at, attempt, max_attempts, version, position, priority, queue, task, payload,
--     started_at, renewed_at, worker, target, group_key, unique_key, context

create table {schema}.finished (
    id            text primary key not null,
    state         text not null check (state in ('succeeded', 'cancelled')),
    queue         text not null,
    task          text not null,
    priority      integer not null,
    target        text,
    group_key     text,
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
    renewed_at    real,
    context       text,
    finished_at   real not null
);
create index {schema}.finished_chain on {schema}.finished (chain) where position > 0;
-- For pruning by age, which partitions do on PostgreSQL.
create index {schema}.finished_age on {schema}.finished (finished_at);

-- Unique keys. `until` null: taken while the job is live; else until that moment, whatever happens to the job.
create table {schema}.keys (
    key    text primary key not null,
    job    text not null,
    until  real
);

create index {schema}.keys_window on {schema}.keys (until) where until is not null;

-- Dependencies between jobs. `state` null: not yet resolved. Result and task are copies: that chain may be pruned.
create table {schema}.dependencies (
    job         text not null,
    depends_on  text not null,  -- a chain
    position    integer not null,
    state       text check (state in ('succeeded', 'failed', 'cancelled', 'deleted')),
    result      text,
    task        text,  -- of the first job of that chain; null until resolved, or if that job was deleted
    primary key (job, depends_on)
);
create index {schema}.dependencies_open on {schema}.dependencies (depends_on, job) where state is null;

-- Attempts that did not succeed; a successful one is recorded by the finished row itself.
create table {schema}.attempts (
    job         text not null,
    version     integer not null,
    attempt     integer not null,
    worker      text not null,
    started_at  real not null,
    ended_at    real not null,
    renewed_at  real,
    expires_at  real,
    outcome     text not null,
    error       text,
    primary key (job, version)
);

-- Durable steps of a handler, by name: completed steps with their results, and the times that it waits for.
create table {schema}.steps (
    job      text not null,
    kind     text not null check (kind in ('step', 'sleep', 'wait', 'missed')),
    name     text not null,
    result   text,
    until    real,
    done_at  real not null,
    primary key (job, kind, name)
);

-- Signals sent to a job; the first of each name counts.
create table {schema}.signals (
    job      text not null,
    name     text not null,
    value    text,
    sent_at  real not null,
    primary key (job, name)
);

-- Nudges: each says that a waiting job may be able to run now. Only promote deletes them. `beyond`: if a nudge
-- concerns many jobs, those up to this one have been processed.
create table {schema}.nudges (
    id      integer primary key autoincrement,
    kind    text not null check (kind in ('target', 'job', 'chain', 'signal')),
    key     text not null,
    beyond  text
);

-- Settings of a queue that operators have made; '*' stands for all queues together.
create table {schema}.queues (
    queue        text primary key not null,
    paused       integer not null default 0,
    max_running  integer check (max_running >= 0),
    fair         integer not null default 0,  -- groups are served in turn
    rated        integer not null default 0,  -- the queue has rates
    by_group     integer not null default 0,  -- the group of a job matters: a job without one gets the group ''
    last_group   text,  -- the group that was served last
    limited      integer not null generated always as (max_running is not null or fair or rated) stored
);

-- Rates: how many jobs may start within a period. Group '': for the whole queue; '*': for each group separately; else
-- for that group.
create table {schema}.rates (
    queue      text not null,
    group_key  text not null,
    rate       integer not null check (rate >= 0),
    per        real not null check (per > 0),
    primary key (queue, group_key)
);

-- When jobs of queues with a rate were started: one row for each time and group.
create table {schema}.starts (
    queue      text not null,
    group_key  text not null,
    at         real not null,
    number     integer not null,
    primary key (queue, group_key, at)
);
create index {schema}.starts_latest on {schema}.starts (queue, at);

-- Schedules. `definition`: what is enqueued and when, as JSON; `declared`: the definition that code last declared.
create table {schema}.schedules (
    name        text primary key not null,
    task        text not null,
    definition  text not null,
    declared    text,
    paused      integer not null default 0,
    next_at     real,  -- null: no further tick
    moved_at    real not null,  -- when next_at was computed
    changed_at  real not null
);
create index {schema}.schedules_due on {schema}.schedules (next_at) where not paused;

-- Ticks of schedules: the worker that inserts the row enqueues the job. `job` null: none was enqueued; `note` says why.
create table {schema}.ticks (
    schedule  text not null,
    tick      real not null,
    job       text,
    note      text,
    primary key (schedule, tick)
);
create index {schema}.ticks_age on {schema}.ticks (tick);
create index {schema}.ticks_jobs on {schema}.ticks (schedule, tick) where job is not null;

-- Workers, by their last reports. A worker that stops in an orderly way deletes its row.
create table {schema}.workers (
    name        text primary key not null,
    host        text not null,
    pid         integer not null,
    about       text not null,  -- its queues, slots, tasks, lease and version
    running     integer not null,
    stopping    integer not null,
    report      text not null,  -- id of its last report: a repeated report is counted once
    started_at  real not null,
    seen_at     real not null
);

-- Counts of events in steps of 60, 600, 3600 and 21600 seconds, coarser for older events; step 0 is the total of all
-- time. Counts of all queues together are stored beside them: as queue *, with negative steps.
create table {schema}.stats (
    step    integer not null,
    at      real not null,
    queue   text not null,
    name    text not null,
    bucket  integer not null,  -- of the histogram
    peak    integer not null,  -- the maximum is kept, not the sum
    number  real not null,
    primary key (step, at, queue, name, bucket)
);

-- How many live jobs each queue had when they were last counted: used where there are too many to count at each
-- request.
create table {schema}.queue_samples (
    queue        text primary key,
    pending      integer not null,
    queued       integer not null,
    running      integer not null,
    paused_jobs  integer not null,
    failed       integer not null,
    oldest       real,  -- for how many seconds the oldest queued job had been due
    counted_at   real not null
);

-- The audit trail: actions of clients that named an actor.
create table {schema}.audit (
    seq      integer primary key autoincrement,
    id       text not null unique,  -- made by the client: a retried action is recorded once
    at       real not null,
    who      text not null,
    what     text not null,
    subject  text not null,
    detail   text
);

-- Changes that clients made, by operation id: a retry finds the answer here. Pruned after a day.
create table {schema}.operations (
    id       text primary key,
    verb     text not null,
    subject  text not null,
    request  text,  -- fingerprint of the request behind an idempotency key
    outcome  text,  -- the answer, without payload or result
    at       real not null
) without rowid;
create index {schema}.operations_age on {schema}.operations (at);

-- Web sessions that were signed out, by their hash, until they would have expired anyway.
create table {schema}.ended_sessions (
    id     text primary key,
    until  real not null
);
create index {schema}.ended_sessions_until on {schema}.ended_sessions (until);

-- One row. touched_at: when maintenance last reached the store; grace_until: no worker reaps before that time.
create table {schema}.pulse (
    single       integer primary key check (single = 1),
    touched_at   real not null default 0,
    grace_until  real not null default 0
);
insert into {schema}.pulse (single) values (1);

-- One row: the worker that may drain itself for a job that must run alone, and until when it may keep its free slots
-- empty.
create table {schema}.quarantine (
    single  integer primary key check (single = 1),
    worker  text,
    until   real not null default 0
);
insert into {schema}.quarantine (single) values (1);

-- One row: the last value used for jobs.seq.
create table {schema}.sequence (
    single  integer primary key check (single = 1),
    last    integer not null
);
insert into {schema}.sequence values (1, 0);

-- Views for reading: the jobs of each table, as SQLite looks up a list of ids only there, and of both together.
create view {schema}.live_jobs as
    select state, wait, losses, token, holds, waits, expires_at, request, awaits, policy, progress, error,
           null as result, 0 as continued, stopped_at as finished_at, {kept}
    from {schema}.jobs;
create view {schema}.over_jobs as
    select state, null as wait, losses, token, 0 as holds, 0 as waits, null as expires_at, null as request,
           null as awaits, null as policy, null as progress, error, result, continued, finished_at, {kept}
    from {schema}.finished;
create view {schema}.all_jobs as select * from {schema}.live_jobs union all select * from {schema}.over_jobs;
