-- Which workers sleep: a notification wakes as many as there are new jobs, and no others.
-- oldest: 1

-- A row for each producer of a worker that has asked for notifications. key: part of the names of its channels. kind:
-- the same for all that serve the same queues and tasks. queues: null: all. until: it needs no notification after that
-- time: it may have died.
create table {schema}.sleepers (
    key     integer primary key,
    kind    integer not null,
    queues  text[],
    tasks   text[] not null,
    until   timestamptz not null
) with (fillfactor = 50);

-- Notify up to `number` sleeping workers that serve a queue and a task, beginning with a random one. Without a queue,
-- notify one of each kind. `channel`: queued or jobs of this schema. Returns how many were notified.
create function {schema}.wake(moment timestamptz, channel text, queue text, task text, number integer) returns bigint
language plpgsql as $$
declare
    start integer := (random() * 268435455)::integer;
    woken bigint;
begin
    if wake.queue is null then
        select count(pg_notify(wake.channel || '.' || to_hex(c.key), '')) into woken
        from (
            select distinct on (s.kind) s.key from {schema}.sleepers s where s.until > wake.moment
            order by s.kind, s.key < start, s.key
        ) c;
    else
        select count(pg_notify(wake.channel || '.' || to_hex(c.key), '')) into woken
        from (
            (select s.key from {schema}.sleepers s
             where s.key >= start and s.until > wake.moment and wake.task = any(s.tasks)
               and (s.queues is null or wake.queue = any(s.queues))
             order by s.key limit wake.number)
            union all
            (select s.key from {schema}.sleepers s
             where s.key < start and s.until > wake.moment and wake.task = any(s.tasks)
               and (s.queues is null or wake.queue = any(s.queues))
             order by s.key limit wake.number)
            limit wake.number
        ) c;
    end if;
    return woken;
end $$;

-- As in migration 2, but it wakes one worker.
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
    if exists (select from {schema}.arming where armed_until > statement_timestamp()) then
        if wait is null then
            perform {schema}.wake(statement_timestamp(), {queued_channel}, enqueue.queue, enqueue.task, 1);
        else
            perform {schema}.wake(statement_timestamp(), {jobs_channel}, null, null, 1);
        end if;
    end if;
    return new_id;
end $$;
