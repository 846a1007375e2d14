--
-- PostgreSQL database dump
--


-- Dumped from database version 18.6
-- Dumped by pg_dump version 18.6

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

--
-- Name: relet; Type: SCHEMA; Schema: -; Owner: -
--

CREATE SCHEMA relet;


--
-- Name: job_state; Type: TYPE; Schema: relet; Owner: -
--

CREATE TYPE relet.job_state AS ENUM (
    'pending',
    'queued',
    'running',
    'paused',
    'failed',
    'succeeded',
    'cancelled'
);


--
-- Name: attach_partition(date); Type: FUNCTION; Schema: relet; Owner: -
--

CREATE FUNCTION relet.attach_partition(day date) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    execute format('alter table "relet".finished attach partition "relet".%I for values from (%L) to (%L)',
        'finished_' || to_char(day, 'YYYYMMDD'), "relet".first_id(day::timestamp at time zone 'UTC'),
        "relet".first_id((day + 1)::timestamp at time zone 'UTC'));
end $$;


--
-- Name: drop_partition(date, double precision); Type: FUNCTION; Schema: relet; Owner: -
--

CREATE FUNCTION relet.drop_partition(day date, seconds double precision) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
declare
    part     text := 'finished_' || to_char(day, 'YYYYMMDD');
    low      uuid := "relet".first_id(day::timestamp at time zone 'UTC');
    high     uuid := "relet".first_id((day + 1)::timestamp at time zone 'UTC');
    pending  boolean;
    needed   boolean;
begin
    perform set_config('lock_timeout', '5s', true);
    perform 1 from "relet".locks where name = 'partitions' for update;
    if to_regclass(format('"relet".%I', part)) is null then
        return false;
    end if;
    select i.inhdetachpending into pending from pg_inherits i
    where i.inhrelid = to_regclass(format('"relet".%I', part)) and i.inhparent = '"relet".finished'::regclass;
    if pending then
        execute format('alter table "relet".finished detach partition "relet".%I finalize', part);
        pending := null;
    elsif pending is false then
        perform set_config('lock_timeout', '50ms', true);
        lock table "relet".finished in access exclusive mode;
    end if;
    execute format('select exists (select from "relet".jobs where id >= $1 and id < $2)
        or exists (select from "relet".%1$I where finished_at >= statement_timestamp() - make_interval(secs => $3))
        or exists (select from "relet".dependencies d join "relet".%1$I f on f.chain = d.depends_on
            where d.state is null)',
        part)
    into needed using low, high, seconds;
    if not needed then
        execute format('drop table "relet".%I', part);
    elsif pending is null then
        perform "relet".attach_partition(day);
    end if;
    return not needed;
end $_$;


--
-- Name: enqueue(text, json, text, integer, timestamp with time zone, double precision, text, text, double precision, uuid[], integer, uuid, text); Type: FUNCTION; Schema: relet; Owner: -
--

CREATE FUNCTION relet.enqueue(task text, payload json DEFAULT '{}'::json, queue text DEFAULT 'default'::text, priority integer DEFAULT 0, run_at timestamp with time zone DEFAULT NULL::timestamp with time zone, delay double precision DEFAULT NULL::double precision, target text DEFAULT NULL::text, unique_key text DEFAULT NULL::text, unique_for double precision DEFAULT NULL::double precision, depends_on uuid[] DEFAULT '{}'::uuid[], max_attempts integer DEFAULT 4, id uuid DEFAULT NULL::uuid, group_key text DEFAULT NULL::text) RETURNS uuid
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
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
        new_id := (left(replace("relet".first_id(clock_timestamp())::text, '-', ''), 12) || '7'
                   || substr(replace(gen_random_uuid()::text, '-', ''), 14))::uuid;
    end if;
    if enqueue.task is null or enqueue.task !~ '^[A-Za-z0-9_.:/@+-]{1,128}$' then
        raise exception 'relet: task must be 1 to 128 letters, digits or _ . : / @ + -' using errcode = '22023';
    elsif enqueue.queue is null or enqueue.queue !~ '^[A-Za-z0-9_.:/@+-]{1,128}$' then
        raise exception 'relet: queue must be 1 to 128 letters, digits or _ . : / @ + -' using errcode = '22023';
    elsif enqueue.priority is null or enqueue.priority not between -100 and 100 then
        raise exception 'relet: priority must be from -100 to 100' using errcode = '22023';
    elsif "relet".payload_problem(enqueue.payload) is not null then
        raise exception 'relet: payload %', "relet".payload_problem(enqueue.payload) using errcode = '22023';
    elsif not "relet".is_printable(enqueue.target) then
        raise exception 'relet: target must be 1 to 512 printable characters' using errcode = '22023';
    elsif not "relet".is_printable(enqueue.group_key) or enqueue.group_key = '*' then
        raise exception 'relet: group_key must be 1 to 512 printable characters, and not *' using errcode = '22023';
    elsif not "relet".is_printable(enqueue.unique_key) then
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
    elsif new_id::text !~ '^.{14}7.{4}[89ab]' or new_id < "relet".first_id('2020-01-01Z')
        or new_id >= "relet".first_id('2100-01-01Z') then
        raise exception 'relet: id must be a UUIDv7 whose time lies between 2020 and 2100' using errcode = '22023';
    elsif array_position(enqueue.depends_on, null) is not null then
        raise exception 'relet: depends_on has a null in it' using errcode = '22023';
    end if;
    if due is null then
        due := statement_timestamp() + make_interval(secs => coalesce(enqueue.delay, 0));
    end if;
    ahead := due > statement_timestamp();

    if given and exists (select from "relet".all_jobs j where j.id = new_id) then
        return new_id;
    end if;
    if enqueue.depends_on <> '{}' then  -- ended jobs must not be pruned before this transaction ends
        perform 1 from "relet".finished f
        where f.id = any(array(select j.chain from "relet".all_jobs j where j.id = any(enqueue.depends_on)))
        order by f.id for key share;
        perform 1 from "relet".finished f
        where f.chain = any(array(select j.chain from "relet".all_jobs j where j.id = any(enqueue.depends_on)))
          and f."position" > 0
        order by f.id for key share;
    end if;
    select array_agg(c.chain order by c.place), coalesce(sum(c.named), 0) into chains, waits
    from (select j.chain, min(a.place) as place, count(distinct j.id) as named
          from unnest(enqueue.depends_on) with ordinality a(id, place) join "relet".all_jobs j on j.id = a.id
          group by j.chain) c;
    if waits < (select count(distinct a) from unnest(enqueue.depends_on) a) then
        raise exception 'relet: depends_on names a job that does not exist' using errcode = '22023';
    end if;
    waits := coalesce(array_length(chains, 1), 0);

    if enqueue.unique_key is not null then
        holder := "relet".take_key(enqueue.unique_key, new_id, null, enqueue.unique_for, null);
        if holder <> new_id and exists (select from "relet".all_jobs j where j.id = holder) then
            return holder;
        elsif holder <> new_id then
            raise exception 'relet: unique_key % is taken, though job % is gone', enqueue.unique_key, holder
                using errcode = '23505';
        end if;
    end if;

    wait := case when waits > 0 then 'jobs' when ahead then 'time' when enqueue.target is not null then 'target' end;
    insert into "relet".jobs (id, state, wait, queue, task, priority, rank, target, group_key, payload, run_at,
                               max_attempts, unique_key, windowed, chain, waits, dependency_count, created_at)
    values (new_id, (case when wait is null then 'queued' else 'pending' end)::"relet".job_state, wait, enqueue.queue,
            enqueue.task, enqueue.priority, -enqueue.priority, enqueue.target,
            coalesce(enqueue.group_key, (select '' from "relet".queues q where q.queue = enqueue.queue
                and q.by_group)),
            enqueue.payload, due, enqueue.max_attempts, enqueue.unique_key,
            enqueue.unique_for is not null, new_id, waits, waits, statement_timestamp())
    on conflict do nothing;
    if not found then
        return new_id;
    end if;
    if given and exists (select from "relet".finished f where f.id = new_id) then
        delete from "relet".jobs j where j.id = new_id;  -- it finished just now, and must not be made live again
        delete from "relet".keys k where k.job = new_id and k.until is null;
        return new_id;
    end if;
    insert into "relet".dependencies (job, depends_on, "position")
    select new_id, c.chain, c.place - 1 from unnest(chains) with ordinality c(chain, place);
    if wait in ('target', 'jobs') then
        insert into "relet".nudges (kind, key)
        values (case wait when 'target' then 'target' else 'job' end,
            case wait when 'target' then enqueue.target else new_id::text end);
    end if;
    if wait is null then
        insert into "relet".group_nudges (queue, group_key)
        select j.queue, j.group_key from "relet".jobs j
        where j.id = new_id and j.group_key is not null
          and j.queue = any(array(select l.queue from "relet".group_limits l));
    end if;
    if exists (select from "relet".arming where armed_until > statement_timestamp()) then
        if wait is null then
            perform "relet".wake(statement_timestamp(), 'relet.queued', enqueue.queue, enqueue.task, 1);
        else
            perform "relet".wake(statement_timestamp(), 'relet.jobs', null, null, 1);
        end if;
    end if;
    return new_id;
end $_$;


--
-- Name: first_id(timestamp with time zone); Type: FUNCTION; Schema: relet; Owner: -
--

CREATE FUNCTION relet.first_id(moment timestamp with time zone) RETURNS uuid
    LANGUAGE sql IMMUTABLE
    AS $$
    select (lpad(to_hex((extract(epoch from moment) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid
$$;


--
-- Name: is_consistent(relet.job_state, integer, integer, integer, smallint, integer, smallint, smallint, boolean, text, text, text, uuid, text, timestamp with time zone, timestamp with time zone, timestamp with time zone); Type: FUNCTION; Schema: relet; Owner: -
--

CREATE FUNCTION relet.is_consistent(state relet.job_state, attempt integer, max_attempts integer, losses integer, suspect smallint, waits integer, priority smallint, rank smallint, holds boolean, target text, wait text, worker text, token uuid, request text, started_at timestamp with time zone, expires_at timestamp with time zone, stopped_at timestamp with time zone) RETURNS boolean
    LANGUAGE plpgsql IMMUTABLE
    AS $$
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


--
-- Name: is_printable(text); Type: FUNCTION; Schema: relet; Owner: -
--

CREATE FUNCTION relet.is_printable(value text) RETURNS boolean
    LANGUAGE sql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    select length(value) between 1 and 512 and value !~ ('['
        || '\u0001-\u001f\u007f-\u00a0\u00ad\u0600-\u0605\u061c\u06dd\u070f\u0890-\u0891\u08e2\u1680\u180e'
        || '\u2000-\u200f\u2028-\u202f'
        || '\u205f-\u2064\u2066-\u206f\u3000\ue000-\uf8ff\ufdd0-\ufdef\ufeff\ufff9-\ufffb\ufffe-\uffff'
        || '\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a'
        || '\U000e0001\U000e0020-\U000e007f\U000f0000-\U0010ffff'
        || ']')
$$;


--
-- Name: lock_limits(text[]); Type: FUNCTION; Schema: relet; Owner: -
--

CREATE FUNCTION relet.lock_limits(names text[]) RETURNS TABLE(queue text, max_running integer, fair boolean, rated boolean, last_group text, running bigint)
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET jit TO 'off'
    AS $$
#variable_conflict use_column
begin
    perform from "relet".queues q where q.limited and (q.queue = '*' or q.queue = any(names)) order by q.queue
        for update;
    return query
    with limits as materialized (
        select q.queue, q.max_running, q.fair, q.rated, q.last_group from "relet".queues q
        where q.limited and (q.queue = '*' or q.queue = any(names))
    ),
    running as materialized (
        select j.queue, count(*) as number from "relet".jobs j
        where j.expires_at between '-infinity' and 'infinity'
          and exists (select from limits l where l.max_running is not null)
        group by j.queue
    )
    select l.queue, l.max_running, l.fair, l.rated, l.last_group,
           (select coalesce(sum(r.number), 0)::bigint from running r where l.queue in (r.queue, '*'))
    from limits l
    order by l.queue;
end $$;


--
-- Name: make_partitions(date, date); Type: FUNCTION; Schema: relet; Owner: -
--

CREATE FUNCTION relet.make_partitions(first_day date, last_day date) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    day      date;
    part     text;
    pending  boolean;
    made     integer := 0;
begin
    perform 1 from "relet".locks where name = 'partitions' for update;
    for day in select generate_series(first_day::timestamp, last_day::timestamp, interval '1 day')::date loop
        part := 'finished_' || to_char(day, 'YYYYMMDD');
        select i.inhdetachpending into pending from pg_inherits i
        where i.inhrelid = to_regclass(format('"relet".%I', part)) and i.inhparent = '"relet".finished'::regclass;
        continue when pending is false;
        if pending then  -- pruning was interrupted during the detach
            execute format('alter table "relet".finished detach partition "relet".%I finalize', part);
        end if;
        execute format(
            'create table if not exists "relet".%I (like "relet".finished including defaults including constraints)',
            part);
        perform "relet".attach_partition(day);
        made := made + 1;
    end loop;
    return made;
end $$;


--
-- Name: newest_jobs(integer); Type: FUNCTION; Schema: relet; Owner: -
--

CREATE FUNCTION relet.newest_jobs(most integer) RETURNS TABLE(queue text, state text, run_at timestamp with time zone)
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_sort TO 'off'
    SET enable_bitmapscan TO 'off'
    AS $$
    select queue, state::text, run_at from "relet".jobs order by id desc limit most
$$;


--
-- Name: payload_problem(json); Type: FUNCTION; Schema: relet; Owner: -
--

CREATE FUNCTION relet.payload_problem(payload json) RETURNS text
    LANGUAGE plpgsql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
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
end $_$;


--
-- Name: reached_live(uuid, uuid, integer); Type: FUNCTION; Schema: relet; Owner: -
--

CREATE FUNCTION relet.reached_live(lowest uuid, before uuid, scan integer) RETURNS uuid
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_sort TO 'off'
    SET enable_bitmapscan TO 'off'
    AS $$
    select id from "relet".jobs where id >= lowest and id < before order by id desc offset scan - 1 limit 1
$$;


--
-- Name: reached_over(uuid, uuid, integer); Type: FUNCTION; Schema: relet; Owner: -
--

CREATE FUNCTION relet.reached_over(lowest uuid, before uuid, scan integer) RETURNS uuid
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_sort TO 'off'
    SET enable_bitmapscan TO 'off'
    AS $$
    select id from "relet".finished where id >= lowest and id < before order by id desc offset scan - 1 limit 1
$$;


--
-- Name: succeed_plain(uuid[], uuid[], text[], timestamp with time zone); Type: FUNCTION; Schema: relet; Owner: -
--

CREATE FUNCTION relet.succeed_plain(ids uuid[], tokens uuid[], results text[], moment timestamp with time zone) RETURNS TABLE(number bigint, watched boolean, held boolean)
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    AS $$
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
        delete from "relet".jobs j
        where j.id = any(ids) and j.token = tokens[width_bucket(j.id, ids)] and j.state = 'running'
        returning j.id, j.chain, j.created_at, j.run_at, j.attempt, j.max_attempts, j.version, j."position", j.priority, j.queue, j.task, j.payload, j.started_at, j.renewed_at, j.worker, j.target, j.group_key, j.unique_key, j.context, j.losses, j.token, j.watched, j.holds, results[width_bucket(j.id, ids)] as result
    ),
    kept as (
        insert into "relet".finished (id, chain, created_at, run_at, attempt, max_attempts, version, "position", priority, queue, task, payload, started_at, renewed_at, worker, target, group_key, unique_key, context, losses, token, state, result, finished_at)
        select id, chain, created_at, run_at, attempt, max_attempts, version, "position", priority, queue, task, payload, started_at, renewed_at, worker, target, group_key, unique_key, context, losses, token, 'succeeded', coalesce(result, 'null')::json, moment from gone
    )
    select count(*), array_agg(target) filter (where holds), array_agg(chain) filter (where watched),
           array_agg(id) filter (where unique_key is not null),
           array_agg(unique_key) filter (where unique_key is not null),
           array_agg(queue) filter (where group_key is not null),
           array_agg(group_key) filter (where group_key is not null)
    into total, targets, chains, keyed, unkeyed, queues, groups
    from gone;
    if targets is not null or chains is not null then
        insert into "relet".nudges (kind, key)
        select 'target', target from unnest(targets) as target
        union all
        select 'chain', chain::text from unnest(chains) as chain;
    end if;
    if keyed is not null then
        -- Skip a locked key: another job is taking it over, and the key of a job that has ended blocks no other job.
        delete from "relet".keys where key = any(array(
            select k.key from "relet".keys k
            where k.key = any(unkeyed) and k.job = any(keyed) and k.until is null
            for update skip locked));
    end if;
    if queues is not null then
        insert into "relet".group_nudges (queue, group_key)
        select distinct n.queue, n.group_key from unnest(queues, groups) as n(queue, group_key)
        where n.queue = any(array(select l.queue from "relet".group_limits l));
    end if;
    return query select total, chains is not null, targets is not null;
end $$;


--
-- Name: take_key(text, uuid, uuid, double precision, timestamp with time zone); Type: FUNCTION; Schema: relet; Owner: -
--

CREATE FUNCTION relet.take_key(wanted text, candidate uuid, heir_of uuid, seconds double precision, given timestamp with time zone) RETURNS uuid
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    holder  uuid;
    ends    timestamptz;
    moment  timestamptz := given;
begin
    for attempt in 1..1000 loop
        if given is null then
            moment := clock_timestamp();
        end if;
        insert into "relet".keys (key, job, until) values (wanted, candidate, moment + make_interval(secs => seconds))
        on conflict (key) do nothing;
        if found then
            return candidate;
        end if;
        select k.job, k.until into holder, ends from "relet".keys k where k.key = wanted;
        continue when not found;  -- the key was released meanwhile
        if given is null then
            moment := clock_timestamp();
        end if;
        if holder = candidate then
            -- Its job may have been deleted and is enqueued again: pruning must not delete the key before that is
            -- committed.
            perform 1 from "relet".keys k where k.key = wanted and k.job = candidate for update;
            continue when not found;
            return candidate;
        end if;
        if (holder is distinct from heir_of and case
            when ends is not null then ends > moment
            -- A job that ends releases its key, unless another transaction has locked the key then: such a key is void.
            else exists (select from "relet".jobs j where j.id = holder and j.state <> 'failed')
        end) then
            return holder;
        end if;
        update "relet".keys k
        set job = candidate, until = moment + make_interval(secs => seconds)
        where k.key = wanted and k.job = holder and k.until is not distinct from ends;
        if found then
            return candidate;
        end if;
    end loop;
    raise serialization_failure using message = format('relet: unique key %L changes hands too often', wanted);
end $$;


--
-- Name: wake(timestamp with time zone, text, text, text, integer); Type: FUNCTION; Schema: relet; Owner: -
--

CREATE FUNCTION relet.wake(moment timestamp with time zone, channel text, queue text, task text, number integer) RETURNS bigint
    LANGUAGE plpgsql
    AS $$
declare
    start integer := (random() * 268435455)::integer;
    woken bigint;
begin
    if wake.queue is null then
        select count(pg_notify(wake.channel || '.' || to_hex(c.key), '')) into woken
        from (
            select distinct on (s.kind) s.key from "relet".sleepers s where s.until > wake.moment
            order by s.kind, s.key < start, s.key
        ) c;
    else
        select count(pg_notify(wake.channel || '.' || to_hex(c.key), '')) into woken
        from (
            (select s.key from "relet".sleepers s
             where s.key >= start and s.until > wake.moment and wake.task = any(s.tasks)
               and (s.queues is null or wake.queue = any(s.queues))
             order by s.key limit wake.number)
            union all
            (select s.key from "relet".sleepers s
             where s.key < start and s.until > wake.moment and wake.task = any(s.tasks)
               and (s.queues is null or wake.queue = any(s.queues))
             order by s.key limit wake.number)
            limit wake.number
        ) c;
    end if;
    return woken;
end $$;


SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: attempts; Type: TABLE; Schema: relet; Owner: -
--

CREATE TABLE relet.attempts (
    job uuid NOT NULL,
    version integer NOT NULL,
    attempt integer NOT NULL,
    worker text NOT NULL,
    started_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone NOT NULL,
    renewed_at timestamp with time zone,
    expires_at timestamp with time zone,
    outcome text NOT NULL,
    error text,
    error_type text
);


--
-- Name: finished; Type: TABLE; Schema: relet; Owner: -
--

CREATE TABLE relet.finished (
    id uuid NOT NULL,
    chain uuid NOT NULL,
    created_at timestamp with time zone NOT NULL,
    run_at timestamp with time zone NOT NULL,
    finished_at timestamp with time zone NOT NULL,
    attempt integer NOT NULL,
    max_attempts integer NOT NULL,
    losses integer NOT NULL,
    version integer NOT NULL,
    "position" integer NOT NULL,
    state relet.job_state NOT NULL,
    priority smallint NOT NULL,
    continued boolean DEFAULT false NOT NULL,
    queue text NOT NULL,
    task text NOT NULL,
    payload json NOT NULL,
    token uuid,
    started_at timestamp with time zone,
    renewed_at timestamp with time zone,
    worker text,
    target text,
    group_key text,
    unique_key text,
    result json,
    error text,
    context text,
    error_type text,
    CONSTRAINT finished_state_check CHECK ((state = ANY (ARRAY['succeeded'::relet.job_state, 'cancelled'::relet.job_state])))
)
PARTITION BY RANGE (id);


--
-- Name: job_seq; Type: SEQUENCE; Schema: relet; Owner: -
--

CREATE SEQUENCE relet.job_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


--
-- Name: jobs; Type: TABLE; Schema: relet; Owner: -
--

CREATE TABLE relet.jobs (
    id uuid NOT NULL,
    chain uuid NOT NULL,
    seq bigint DEFAULT nextval('relet.job_seq'::regclass) NOT NULL,
    created_at timestamp with time zone NOT NULL,
    run_at timestamp with time zone NOT NULL,
    attempt integer DEFAULT 0 NOT NULL,
    max_attempts integer NOT NULL,
    losses integer DEFAULT 0 NOT NULL,
    version integer DEFAULT 0 NOT NULL,
    "position" integer DEFAULT 0 NOT NULL,
    waits integer DEFAULT 0 NOT NULL,
    dependency_count integer DEFAULT 0 NOT NULL,
    state relet.job_state NOT NULL,
    priority smallint NOT NULL,
    rank smallint NOT NULL,
    suspect smallint DEFAULT 0 NOT NULL,
    holds boolean DEFAULT false NOT NULL,
    alone boolean DEFAULT false NOT NULL,
    watched boolean DEFAULT false NOT NULL,
    windowed boolean DEFAULT false NOT NULL,
    queue text NOT NULL,
    task text NOT NULL,
    payload json NOT NULL,
    token uuid,
    started_at timestamp with time zone,
    expires_at timestamp with time zone,
    renewed_at timestamp with time zone,
    stopped_at timestamp with time zone,
    lease double precision,
    worker text,
    wait text,
    target text,
    group_key text,
    unique_key text,
    request text,
    policy json,
    progress json,
    error text,
    awaits text,
    context text,
    start_by timestamp with time zone,
    CONSTRAINT jobs_consistent CHECK (relet.is_consistent(state, attempt, max_attempts, losses, suspect, waits, priority, rank, holds, target, wait, worker, token, request, started_at, expires_at, stopped_at))
)
WITH (autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_threshold='1000', autovacuum_vacuum_cost_delay='0', autovacuum_analyze_scale_factor='0.1', autovacuum_analyze_threshold='1000');


--
-- Name: reruns; Type: TABLE; Schema: relet; Owner: -
--

CREATE TABLE relet.reruns (
    job uuid NOT NULL,
    rerun_of uuid NOT NULL
);


--
-- Name: tags; Type: TABLE; Schema: relet; Owner: -
--

CREATE TABLE relet.tags (
    tag text NOT NULL,
    job uuid NOT NULL
);


--
-- Name: live_jobs; Type: VIEW; Schema: relet; Owner: -
--

CREATE VIEW relet.live_jobs AS
 SELECT state,
    wait,
    losses,
    token,
    holds,
    waits,
    expires_at,
    request,
    awaits,
    policy,
    progress,
    error,
    NULL::json AS result,
    false AS continued,
    stopped_at AS finished_at,
    id,
    chain,
    created_at,
    run_at,
    attempt,
    max_attempts,
    version,
    "position",
    priority,
    queue,
    task,
    payload,
    started_at,
    renewed_at,
    worker,
    target,
    group_key,
    unique_key,
    context,
    start_by,
    COALESCE(( SELECT json_agg(t.tag ORDER BY t.tag) AS json_agg
           FROM relet.tags t
          WHERE (t.job = j.id)), '[]'::json) AS tags,
    ( SELECT r.rerun_of
           FROM relet.reruns r
          WHERE (r.job = j.id)) AS rerun_of,
    ( SELECT a.error_type
           FROM relet.attempts a
          WHERE ((a.job = j.id) AND (a.error = j.error))
          ORDER BY a.version DESC
         LIMIT 1) AS error_type
   FROM relet.jobs j;


--
-- Name: over_jobs; Type: VIEW; Schema: relet; Owner: -
--

CREATE VIEW relet.over_jobs AS
 SELECT state,
    NULL::text AS wait,
    losses,
    token,
    false AS holds,
    0 AS waits,
    NULL::timestamp with time zone AS expires_at,
    NULL::text AS request,
    NULL::text AS awaits,
    NULL::json AS policy,
    NULL::json AS progress,
    error,
    result,
    continued,
    finished_at,
    id,
    chain,
    created_at,
    run_at,
    attempt,
    max_attempts,
    version,
    "position",
    priority,
    queue,
    task,
    payload,
    started_at,
    renewed_at,
    worker,
    target,
    group_key,
    unique_key,
    context,
    NULL::timestamp with time zone AS start_by,
    COALESCE(( SELECT json_agg(t.tag ORDER BY t.tag) AS json_agg
           FROM relet.tags t
          WHERE (t.job = f.id)), '[]'::json) AS tags,
    ( SELECT r.rerun_of
           FROM relet.reruns r
          WHERE (r.job = f.id)) AS rerun_of,
    COALESCE(error_type, ( SELECT a.error_type
           FROM relet.attempts a
          WHERE ((a.job = f.id) AND (a.error = f.error))
          ORDER BY a.version DESC
         LIMIT 1)) AS error_type
   FROM relet.finished f;


--
-- Name: all_jobs; Type: VIEW; Schema: relet; Owner: -
--

CREATE VIEW relet.all_jobs AS
 SELECT live_jobs.state,
    live_jobs.wait,
    live_jobs.losses,
    live_jobs.token,
    live_jobs.holds,
    live_jobs.waits,
    live_jobs.expires_at,
    live_jobs.request,
    live_jobs.awaits,
    live_jobs.policy,
    live_jobs.progress,
    live_jobs.error,
    live_jobs.result,
    live_jobs.continued,
    live_jobs.finished_at,
    live_jobs.id,
    live_jobs.chain,
    live_jobs.created_at,
    live_jobs.run_at,
    live_jobs.attempt,
    live_jobs.max_attempts,
    live_jobs.version,
    live_jobs."position",
    live_jobs.priority,
    live_jobs.queue,
    live_jobs.task,
    live_jobs.payload,
    live_jobs.started_at,
    live_jobs.renewed_at,
    live_jobs.worker,
    live_jobs.target,
    live_jobs.group_key,
    live_jobs.unique_key,
    live_jobs.context,
    live_jobs.start_by,
    live_jobs.tags,
    live_jobs.rerun_of,
    live_jobs.error_type
   FROM relet.live_jobs
UNION ALL
 SELECT over_jobs.state,
    over_jobs.wait,
    over_jobs.losses,
    over_jobs.token,
    over_jobs.holds,
    over_jobs.waits,
    over_jobs.expires_at,
    over_jobs.request,
    over_jobs.awaits,
    over_jobs.policy,
    over_jobs.progress,
    over_jobs.error,
    over_jobs.result,
    over_jobs.continued,
    over_jobs.finished_at,
    over_jobs.id,
    over_jobs.chain,
    over_jobs.created_at,
    over_jobs.run_at,
    over_jobs.attempt,
    over_jobs.max_attempts,
    over_jobs.version,
    over_jobs."position",
    over_jobs.priority,
    over_jobs.queue,
    over_jobs.task,
    over_jobs.payload,
    over_jobs.started_at,
    over_jobs.renewed_at,
    over_jobs.worker,
    over_jobs.target,
    over_jobs.group_key,
    over_jobs.unique_key,
    over_jobs.context,
    over_jobs.start_by,
    over_jobs.tags,
    over_jobs.rerun_of,
    over_jobs.error_type
   FROM relet.over_jobs;


--
-- Name: arming; Type: TABLE; Schema: relet; Owner: -
--

CREATE TABLE relet.arming (
    single boolean DEFAULT true NOT NULL,
    armed_until timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL,
    CONSTRAINT arming_single_check CHECK (single)
)
WITH (fillfactor='10');


--
-- Name: audit; Type: TABLE; Schema: relet; Owner: -
--

CREATE TABLE relet.audit (
    seq bigint NOT NULL,
    id uuid NOT NULL,
    at timestamp with time zone NOT NULL,
    who text NOT NULL,
    what text NOT NULL,
    subject text NOT NULL,
    detail json
);


--
-- Name: audit_seq_seq; Type: SEQUENCE; Schema: relet; Owner: -
--

ALTER TABLE relet.audit ALTER COLUMN seq ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME relet.audit_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: dependencies; Type: TABLE; Schema: relet; Owner: -
--

CREATE TABLE relet.dependencies (
    job uuid NOT NULL,
    depends_on uuid NOT NULL,
    "position" integer NOT NULL,
    state text,
    result json,
    task text,
    CONSTRAINT dependencies_state_check CHECK ((state = ANY (ARRAY['succeeded'::text, 'failed'::text, 'cancelled'::text, 'deleted'::text])))
);


--
-- Name: ended_sessions; Type: TABLE; Schema: relet; Owner: -
--

CREATE TABLE relet.ended_sessions (
    id text NOT NULL,
    until timestamp with time zone NOT NULL
);


--
-- Name: finished_20261118; Type: TABLE; Schema: relet; Owner: -
--

CREATE TABLE relet.finished_20261118 (
    id uuid CONSTRAINT finished_id_not_null NOT NULL,
    chain uuid CONSTRAINT finished_chain_not_null NOT NULL,
    created_at timestamp with time zone CONSTRAINT finished_created_at_not_null NOT NULL,
    run_at timestamp with time zone CONSTRAINT finished_run_at_not_null NOT NULL,
    finished_at timestamp with time zone CONSTRAINT finished_finished_at_not_null NOT NULL,
    attempt integer CONSTRAINT finished_attempt_not_null NOT NULL,
    max_attempts integer CONSTRAINT finished_max_attempts_not_null NOT NULL,
    losses integer CONSTRAINT finished_losses_not_null NOT NULL,
    version integer CONSTRAINT finished_version_not_null NOT NULL,
    "position" integer CONSTRAINT finished_position_not_null NOT NULL,
    state relet.job_state CONSTRAINT finished_state_not_null NOT NULL,
    priority smallint CONSTRAINT finished_priority_not_null NOT NULL,
    continued boolean DEFAULT false CONSTRAINT finished_continued_not_null NOT NULL,
    queue text CONSTRAINT finished_queue_not_null NOT NULL,
    task text CONSTRAINT finished_task_not_null NOT NULL,
    payload json CONSTRAINT finished_payload_not_null NOT NULL,
    token uuid,
    started_at timestamp with time zone,
    renewed_at timestamp with time zone,
    worker text,
    target text,
    group_key text,
    unique_key text,
    result json,
    error text,
    context text,
    error_type text,
    CONSTRAINT finished_state_check CHECK ((state = ANY (ARRAY['succeeded'::relet.job_state, 'cancelled'::relet.job_state])))
);


--
-- Name: finished_20261119; Type: TABLE; Schema: relet; Owner: -
--

CREATE TABLE relet.finished_20261119 (
    id uuid CONSTRAINT finished_id_not_null NOT NULL,
    chain uuid CONSTRAINT finished_chain_not_null NOT NULL,
    created_at timestamp with time zone CONSTRAINT finished_created_at_not_null NOT NULL,
    run_at timestamp with time zone CONSTRAINT finished_run_at_not_null NOT NULL,
    finished_at timestamp with time zone CONSTRAINT finished_finished_at_not_null NOT NULL,
    attempt integer CONSTRAINT finished_attempt_not_null NOT NULL,
    max_attempts integer CONSTRAINT finished_max_attempts_not_null NOT NULL,
    losses integer CONSTRAINT finished_losses_not_null NOT NULL,
    version integer CONSTRAINT finished_version_not_null NOT NULL,
    "position" integer CONSTRAINT finished_position_not_null NOT NULL,
    state relet.job_state CONSTRAINT finished_state_not_null NOT NULL,
    priority smallint CONSTRAINT finished_priority_not_null NOT NULL,
    continued boolean DEFAULT false CONSTRAINT finished_continued_not_null NOT NULL,
    queue text CONSTRAINT finished_queue_not_null NOT NULL,
    task text CONSTRAINT finished_task_not_null NOT NULL,
    payload json CONSTRAINT finished_payload_not_null NOT NULL,
    token uuid,
    started_at timestamp with time zone,
    renewed_at timestamp with time zone,
    worker text,
    target text,
    group_key text,
    unique_key text,
    result json,
    error text,
    context text,
    error_type text,
    CONSTRAINT finished_state_check CHECK ((state = ANY (ARRAY['succeeded'::relet.job_state, 'cancelled'::relet.job_state])))
);


--
-- Name: finished_20261120; Type: TABLE; Schema: relet; Owner: -
--

CREATE TABLE relet.finished_20261120 (
    id uuid CONSTRAINT finished_id_not_null NOT NULL,
    chain uuid CONSTRAINT finished_chain_not_null NOT NULL,
    created_at timestamp with time zone CONSTRAINT finished_created_at_not_null NOT NULL,
    run_at timestamp with time zone CONSTRAINT finished_run_at_not_null NOT NULL,
    finished_at timestamp with time zone CONSTRAINT finished_finished_at_not_null NOT NULL,
    attempt integer CONSTRAINT finished_attempt_not_null NOT NULL,
    max_attempts integer CONSTRAINT finished_max_attempts_not_null NOT NULL,
    losses integer CONSTRAINT finished_losses_not_null NOT NULL,
    version integer CONSTRAINT finished_version_not_null NOT NULL,
    "position" integer CONSTRAINT finished_position_not_null NOT NULL,
    state relet.job_state CONSTRAINT finished_state_not_null NOT NULL,
    priority smallint CONSTRAINT finished_priority_not_null NOT NULL,
    continued boolean DEFAULT false CONSTRAINT finished_continued_not_null NOT NULL,
    queue text CONSTRAINT finished_queue_not_null NOT NULL,
    task text CONSTRAINT finished_task_not_null NOT NULL,
    payload json CONSTRAINT finished_payload_not_null NOT NULL,
    token uuid,
    started_at timestamp with time zone,
    renewed_at timestamp with time zone,
    worker text,
    target text,
    group_key text,
    unique_key text,
    result json,
    error text,
    context text,
    error_type text,
    CONSTRAINT finished_state_check CHECK ((state = ANY (ARRAY['succeeded'::relet.job_state, 'cancelled'::relet.job_state])))
);


--
-- Name: finished_20261121; Type: TABLE; Schema: relet; Owner: -
--

CREATE TABLE relet.finished_20261121 (
    id uuid CONSTRAINT finished_id_not_null NOT NULL,
    chain uuid CONSTRAINT finished_chain_not_null NOT NULL,
    created_at timestamp with time zone CONSTRAINT finished_created_at_not_null NOT NULL,
    run_at timestamp with time zone CONSTRAINT finished_run_at_not_null NOT NULL,
    finished_at timestamp with time zone CONSTRAINT finished_finished_at_not_null NOT NULL,
    attempt integer CONSTRAINT finished_attempt_not_null NOT NULL,
    max_attempts integer CONSTRAINT finished_max_attempts_not_null NOT NULL,
    losses integer CONSTRAINT finished_losses_not_null NOT NULL,
    version integer CONSTRAINT finished_version_not_null NOT NULL,
    "position" integer CONSTRAINT finished_position_not_null NOT NULL,
    state relet.job_state CONSTRAINT finished_state_not_null NOT NULL,
    priority smallint CONSTRAINT finished_priority_not_null NOT NULL,
    continued boolean DEFAULT false CONSTRAINT finished_continued_not_null NOT NULL,
    queue text CONSTRAINT finished_queue_not_null NOT NULL,
    task text CONSTRAINT finished_task_not_null NOT NULL,
    payload json CONSTRAINT finished_payload_not_null NOT NULL,
    token uuid,
    started_at timestamp with time zone,
    renewed_at timestamp with time zone,
    worker text,
    target text,
    group_key text,
    unique_key text,
    result json,
    error text,
    context text,
    error_type text,
    CONSTRAINT finished_state_check CHECK ((state = ANY (ARRAY['succeeded'::relet.job_state, 'cancelled'::relet.job_state])))
);


--
-- Name: finished_20261122; Type: TABLE; Schema: relet; Owner: -
--

CREATE TABLE relet.finished_20261122 (
    id uuid CONSTRAINT finished_id_not_null NOT NULL,
    chain uuid CONSTRAINT finished_chain_not_null NOT NULL,
    created_at timestamp with time zone CONSTRAINT finished_created_at_not_null NOT NULL,
    run_at timestamp with time zone CONSTRAINT finished_run_at_not_null NOT NULL,
    finished_at timestamp with time zone CONSTRAINT finished_finished_at_not_null NOT NULL,
    attempt integer CONSTRAINT finished_attempt_not_null NOT NULL,
    max_attempts integer CONSTRAINT finished_max_attempts_not_null NOT NULL,
    losses integer CONSTRAINT finished_losses_not_null NOT NULL,
    version integer CONSTRAINT finished_version_not_null NOT NULL,
    "position" integer CONSTRAINT finished_position_not_null NOT NULL,
    state relet.job_state CONSTRAINT finished_state_not_null NOT NULL,
    priority smallint CONSTRAINT finished_priority_not_null NOT NULL,
    continued boolean DEFAULT false CONSTRAINT finished_continued_not_null NOT NULL,
    queue text CONSTRAINT finished_queue_not_null NOT NULL,
    task text CONSTRAINT finished_task_not_null NOT NULL,
    payload json CONSTRAINT finished_payload_not_null NOT NULL,
    token uuid,
    started_at timestamp with time zone,
    renewed_at timestamp with time zone,
    worker text,
    target text,
    group_key text,
    unique_key text,
    result json,
    error text,
    context text,
    error_type text,
    CONSTRAINT finished_state_check CHECK ((state = ANY (ARRAY['succeeded'::relet.job_state, 'cancelled'::relet.job_state])))
);


--
-- Name: finished_20261123; Type: TABLE; Schema: relet; Owner: -
--

CREATE TABLE relet.finished_20261123 (
    id uuid CONSTRAINT finished_id_not_null NOT NULL,
    chain uuid CONSTRAINT finished_chain_not_null NOT NULL,
    created_at timestamp with time zone CONSTRAINT finished_created_at_not_null NOT NULL,
    run_at timestamp with time zone CONSTRAINT finished_run_at_not_null NOT NULL,
    finished_at timestamp with time zone CONSTRAINT finished_finished_at_not_null NOT NULL,
    attempt integer CONSTRAINT finished_attempt_not_null NOT NULL,
    max_attempts integer CONSTRAINT finished_max_attempts_not_null NOT NULL,
    losses integer CONSTRAINT finished_losses_not_null NOT NULL,
    version integer CONSTRAINT finished_version_not_null NOT NULL,
    "position" integer CONSTRAINT finished_position_not_null NOT NULL,
    state relet.job_state CONSTRAINT finished_state_not_null NOT NULL,
    priority smallint CONSTRAINT finished_priority_not_null NOT NULL,
    continued boolean DEFAULT false CONSTRAINT finished_continued_not_null NOT NULL,
    queue text CONSTRAINT finished_queue_not_null NOT NULL,
    task text CONSTRAINT finished_task_not_null NOT NULL,
    payload json CONSTRAINT finished_payload_not_null NOT NULL,
    token uuid,
    started_at timestamp with time zone,
    renewed_at timestamp with time zone,
    worker text,
    target text,
    group_key text,
    unique_key text,
    result json,
    error text,
    context text,
    error_type text,
    CONSTRAINT finished_state_check CHECK ((state = ANY (ARRAY['succeeded'::relet.job_state, 'cancelled'::relet.job_state])))
);


--
-- Name: finished_20261124; Type: TABLE; Schema: relet; Owner: -
--

CREATE TABLE relet.finished_20261124 (
    id uuid CONSTRAINT finished_id_not_null NOT NULL,
    chain uuid CONSTRAINT finished_chain_not_null NOT NULL,
    created_at timestamp with time zone CONSTRAINT finished_created_at_not_null NOT NULL,
    run_at timestamp with time zone CONSTRAINT finished_run_at_not_null NOT NULL,
    finished_at timestamp with time zone CONSTRAINT finished_finished_at_not_null NOT NULL,
    attempt integer CONSTRAINT finished_attempt_not_null NOT NULL,
    max_attempts integer CONSTRAINT finished_max_attempts_not_null NOT NULL,
    losses integer CONSTRAINT finished_losses_not_null NOT NULL,
    version integer CONSTRAINT finished_version_not_null NOT NULL,
    "position" integer CONSTRAINT finished_position_not_null NOT NULL,
    state relet.job_state CONSTRAINT finished_state_not_null NOT NULL,
    priority smallint CONSTRAINT finished_priority_not_null NOT NULL,
    continued boolean DEFAULT false CONSTRAINT finished_continued_not_null NOT NULL,
    queue text CONSTRAINT finished_queue_not_null NOT NULL,
    task text CONSTRAINT finished_task_not_null NOT NULL,
    payload json CONSTRAINT finished_payload_not_null NOT NULL,
    token uuid,
    started_at timestamp with time zone,
    renewed_at timestamp with time zone,
    worker text,
    target text,
    group_key text,
    unique_key text,
    result json,
    error text,
    context text,
    error_type text,
    CONSTRAINT finished_state_check CHECK ((state = ANY (ARRAY['succeeded'::relet.job_state, 'cancelled'::relet.job_state])))
);


--
-- Name: finished_20261125; Type: TABLE; Schema: relet; Owner: -
--

CREATE TABLE relet.finished_20261125 (
    id uuid CONSTRAINT finished_id_not_null NOT NULL,
    chain uuid CONSTRAINT finished_chain_not_null NOT NULL,
    created_at timestamp with time zone CONSTRAINT finished_created_at_not_null NOT NULL,
    run_at timestamp with time zone CONSTRAINT finished_run_at_not_null NOT NULL,
    finished_at timestamp with time zone CONSTRAINT finished_finished_at_not_null NOT NULL,
    attempt integer CONSTRAINT finished_attempt_not_null NOT NULL,
    max_attempts integer CONSTRAINT finished_max_attempts_not_null NOT NULL,
    losses integer CONSTRAINT finished_losses_not_null NOT NULL,
    version integer CONSTRAINT finished_version_not_null NOT NULL,
    "position" integer CONSTRAINT finished_position_not_null NOT NULL,
    state relet.job_state CONSTRAINT finished_state_not_null NOT NULL,
    priority smallint CONSTRAINT finished_priority_not_null NOT NULL,
    continued boolean DEFAULT false CONSTRAINT finished_continued_not_null NOT NULL,
    queue text CONSTRAINT finished_queue_not_null NOT NULL,
    task text CONSTRAINT finished_task_not_null NOT NULL,
    payload json CONSTRAINT finished_payload_not_null NOT NULL,
    token uuid,
    started_at timestamp with time zone,
    renewed_at timestamp with time zone,
    worker text,
    target text,
    group_key text,
    unique_key text,
    result json,
    error text,
    context text,
    error_type text,
    CONSTRAINT finished_state_check CHECK ((state = ANY (ARRAY['succeeded'::relet.job_state, 'cancelled'::relet.job_state])))
);


--
-- Name: finished_20261126; Type: TABLE; Schema: relet; Owner: -
--

CREATE TABLE relet.finished_20261126 (
    id uuid CONSTRAINT finished_id_not_null NOT NULL,
    chain uuid CONSTRAINT finished_chain_not_null NOT NULL,
    created_at timestamp with time zone CONSTRAINT finished_created_at_not_null NOT NULL,
    run_at timestamp with time zone CONSTRAINT finished_run_at_not_null NOT NULL,
    finished_at timestamp with time zone CONSTRAINT finished_finished_at_not_null NOT NULL,
    attempt integer CONSTRAINT finished_attempt_not_null NOT NULL,
    max_attempts integer CONSTRAINT finished_max_attempts_not_null NOT NULL,
    losses integer CONSTRAINT finished_losses_not_null NOT NULL,
    version integer CONSTRAINT finished_version_not_null NOT NULL,
    "position" integer CONSTRAINT finished_position_not_null NOT NULL,
    state relet.job_state CONSTRAINT finished_state_not_null NOT NULL,
    priority smallint CONSTRAINT finished_priority_not_null NOT NULL,
    continued boolean DEFAULT false CONSTRAINT finished_continued_not_null NOT NULL,
    queue text CONSTRAINT finished_queue_not_null NOT NULL,
    task text CONSTRAINT finished_task_not_null NOT NULL,
    payload json CONSTRAINT finished_payload_not_null NOT NULL,
    token uuid,
    started_at timestamp with time zone,
    renewed_at timestamp with time zone,
    worker text,
    target text,
    group_key text,
    unique_key text,
    result json,
    error text,
    context text,
    error_type text,
    CONSTRAINT finished_state_check CHECK ((state = ANY (ARRAY['succeeded'::relet.job_state, 'cancelled'::relet.job_state])))
);


--
-- Name: group_limits; Type: TABLE; Schema: relet; Owner: -
--

CREATE TABLE relet.group_limits (
    queue text NOT NULL,
    group_key text NOT NULL,
    max_running integer NOT NULL,
    CONSTRAINT group_limits_max_running_check CHECK ((max_running >= 0))
);


--
-- Name: group_nudges; Type: TABLE; Schema: relet; Owner: -
--

CREATE TABLE relet.group_nudges (
    queue text NOT NULL,
    id bigint NOT NULL,
    group_key text NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='1000', autovacuum_vacuum_cost_delay='0');


--
-- Name: group_nudges_id_seq; Type: SEQUENCE; Schema: relet; Owner: -
--

ALTER TABLE relet.group_nudges ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME relet.group_nudges_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: keys; Type: TABLE; Schema: relet; Owner: -
--

CREATE TABLE relet.keys (
    key text NOT NULL,
    job uuid NOT NULL,
    until timestamp with time zone
)
WITH (autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_threshold='1000');


--
-- Name: locks; Type: TABLE; Schema: relet; Owner: -
--

CREATE TABLE relet.locks (
    name text NOT NULL,
    until timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL
);


--
-- Name: migration_lock; Type: TABLE; Schema: relet; Owner: -
--

CREATE TABLE relet.migration_lock (
    single boolean NOT NULL,
    CONSTRAINT migration_lock_single_check CHECK (single)
);


--
-- Name: migrations; Type: TABLE; Schema: relet; Owner: -
--

CREATE TABLE relet.migrations (
    version integer NOT NULL,
    applied_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    oldest integer,
    release text
);


--
-- Name: nudges; Type: TABLE; Schema: relet; Owner: -
--

CREATE TABLE relet.nudges (
    id bigint NOT NULL,
    kind text NOT NULL,
    key text NOT NULL,
    beyond uuid,
    CONSTRAINT nudges_kind_check CHECK ((kind = ANY (ARRAY['target'::text, 'job'::text, 'chain'::text, 'signal'::text])))
)
WITH (autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='1000', autovacuum_vacuum_cost_delay='0');


--
-- Name: nudges_id_seq; Type: SEQUENCE; Schema: relet; Owner: -
--

ALTER TABLE relet.nudges ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME relet.nudges_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: operations; Type: TABLE; Schema: relet; Owner: -
--

CREATE TABLE relet.operations (
    id uuid NOT NULL,
    verb text NOT NULL,
    subject text NOT NULL,
    request text,
    outcome json,
    at timestamp with time zone NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_threshold='1000');


--
-- Name: pulse; Type: TABLE; Schema: relet; Owner: -
--

CREATE TABLE relet.pulse (
    single boolean DEFAULT true NOT NULL,
    touched_at timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL,
    grace_until timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL,
    tables text,
    period_from timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL,
    uptime double precision DEFAULT 0 NOT NULL,
    reap_before timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL,
    CONSTRAINT pulse_single_check CHECK (single)
)
WITH (fillfactor='10');


--
-- Name: quarantine; Type: TABLE; Schema: relet; Owner: -
--

CREATE TABLE relet.quarantine (
    single boolean DEFAULT true NOT NULL,
    worker text,
    until timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL,
    CONSTRAINT quarantine_single_check CHECK (single)
)
WITH (fillfactor='10');


--
-- Name: queue_samples; Type: TABLE; Schema: relet; Owner: -
--

CREATE TABLE relet.queue_samples (
    queue text NOT NULL,
    pending bigint NOT NULL,
    queued bigint NOT NULL,
    running bigint NOT NULL,
    paused_jobs bigint NOT NULL,
    failed bigint NOT NULL,
    oldest double precision,
    counted_at timestamp with time zone NOT NULL
)
WITH (fillfactor='50');


--
-- Name: queues; Type: TABLE; Schema: relet; Owner: -
--

CREATE TABLE relet.queues (
    queue text NOT NULL,
    paused boolean DEFAULT false NOT NULL,
    max_running integer,
    fair boolean DEFAULT false NOT NULL,
    rated boolean DEFAULT false NOT NULL,
    by_group boolean DEFAULT false NOT NULL,
    last_group text,
    limited boolean GENERATED ALWAYS AS (((max_running IS NOT NULL) OR fair OR rated)) STORED NOT NULL,
    declared json,
    CONSTRAINT queues_max_running_check CHECK ((max_running >= 0))
)
WITH (fillfactor='50');


--
-- Name: rates; Type: TABLE; Schema: relet; Owner: -
--

CREATE TABLE relet.rates (
    queue text NOT NULL,
    group_key text NOT NULL,
    rate integer NOT NULL,
    per double precision NOT NULL,
    CONSTRAINT rates_per_check CHECK ((per > (0)::double precision)),
    CONSTRAINT rates_rate_check CHECK ((rate >= 0))
);


--
-- Name: ready_groups; Type: TABLE; Schema: relet; Owner: -
--

CREATE TABLE relet.ready_groups (
    queue text NOT NULL,
    group_key text NOT NULL COLLATE pg_catalog."POSIX"
)
WITH (autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='1000', autovacuum_vacuum_cost_delay='0');


--
-- Name: schedules; Type: TABLE; Schema: relet; Owner: -
--

CREATE TABLE relet.schedules (
    name text NOT NULL,
    task text NOT NULL,
    definition json NOT NULL,
    declared json,
    paused boolean DEFAULT false NOT NULL,
    next_at timestamp with time zone,
    moved_at timestamp with time zone NOT NULL,
    changed_at timestamp with time zone NOT NULL
);


--
-- Name: signals; Type: TABLE; Schema: relet; Owner: -
--

CREATE TABLE relet.signals (
    job uuid NOT NULL,
    name text NOT NULL,
    value json,
    sent_at timestamp with time zone NOT NULL
);


--
-- Name: sleepers; Type: TABLE; Schema: relet; Owner: -
--

CREATE TABLE relet.sleepers (
    key integer NOT NULL,
    kind integer NOT NULL,
    queues text[],
    tasks text[] NOT NULL,
    until timestamp with time zone NOT NULL
)
WITH (fillfactor='50');


--
-- Name: starts; Type: TABLE; Schema: relet; Owner: -
--

CREATE TABLE relet.starts (
    queue text NOT NULL,
    group_key text NOT NULL,
    at timestamp with time zone NOT NULL,
    number integer NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='1000', autovacuum_vacuum_cost_delay='0');


--
-- Name: stats; Type: TABLE; Schema: relet; Owner: -
--

CREATE TABLE relet.stats (
    step integer NOT NULL,
    at timestamp with time zone NOT NULL,
    queue text NOT NULL,
    name text NOT NULL,
    bucket smallint NOT NULL,
    peak boolean NOT NULL,
    number double precision NOT NULL
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_threshold='1000');


--
-- Name: steps; Type: TABLE; Schema: relet; Owner: -
--

CREATE TABLE relet.steps (
    job uuid NOT NULL,
    kind text NOT NULL,
    name text NOT NULL,
    result json,
    until timestamp with time zone,
    done_at timestamp with time zone NOT NULL,
    started_at timestamp with time zone,
    input json,
    CONSTRAINT steps_kind_check CHECK ((kind = ANY (ARRAY['step'::text, 'sleep'::text, 'wait'::text, 'missed'::text])))
);


--
-- Name: ticks; Type: TABLE; Schema: relet; Owner: -
--

CREATE TABLE relet.ticks (
    schedule text NOT NULL,
    tick timestamp with time zone NOT NULL,
    job uuid,
    note text
);


--
-- Name: workers; Type: TABLE; Schema: relet; Owner: -
--

CREATE TABLE relet.workers (
    name text NOT NULL,
    host text NOT NULL,
    pid integer NOT NULL,
    about json NOT NULL,
    running integer NOT NULL,
    stopping boolean NOT NULL,
    report uuid NOT NULL,
    started_at timestamp with time zone NOT NULL,
    seen_at timestamp with time zone NOT NULL
)
WITH (fillfactor='50');


--
-- Name: finished_20261118; Type: TABLE ATTACH; Schema: relet; Owner: -
--

ALTER TABLE ONLY relet.finished ATTACH PARTITION relet.finished_20261118 FOR VALUES FROM ('01a1ebf4-0400-0000-0000-000000000000') TO ('01a1f11a-6000-0000-0000-000000000000');


--
-- Name: finished_20261119; Type: TABLE ATTACH; Schema: relet; Owner: -
--

ALTER TABLE ONLY relet.finished ATTACH PARTITION relet.finished_20261119 FOR VALUES FROM ('01a1f11a-6000-0000-0000-000000000000') TO ('01a1f640-bc00-0000-0000-000000000000');


--
-- Name: finished_20261120; Type: TABLE ATTACH; Schema: relet; Owner: -
--

ALTER TABLE ONLY relet.finished ATTACH PARTITION relet.finished_20261120 FOR VALUES FROM ('01a1f640-bc00-0000-0000-000000000000') TO ('01a1fb67-1800-0000-0000-000000000000');


--
-- Name: finished_20261121; Type: TABLE ATTACH; Schema: relet; Owner: -
--

ALTER TABLE ONLY relet.finished ATTACH PARTITION relet.finished_20261121 FOR VALUES FROM ('01a1fb67-1800-0000-0000-000000000000') TO ('01a2008d-7400-0000-0000-000000000000');


--
-- Name: finished_20261122; Type: TABLE ATTACH; Schema: relet; Owner: -
--

ALTER TABLE ONLY relet.finished ATTACH PARTITION relet.finished_20261122 FOR VALUES FROM ('01a2008d-7400-0000-0000-000000000000') TO ('01a205b3-d000-0000-0000-000000000000');


--
-- Name: finished_20261123; Type: TABLE ATTACH; Schema: relet; Owner: -
--

ALTER TABLE ONLY relet.finished ATTACH PARTITION relet.finished_20261123 FOR VALUES FROM ('01a205b3-d000-0000-0000-000000000000') TO ('01a20ada-2c00-0000-0000-000000000000');


--
-- Name: finished_20261124; Type: TABLE ATTACH; Schema: relet; Owner: -
--

ALTER TABLE ONLY relet.finished ATTACH PARTITION relet.finished_20261124 FOR VALUES FROM ('01a20ada-2c00-0000-0000-000000000000') TO ('01a21000-8800-0000-0000-000000000000');


--
-- Name: finished_20261125; Type: TABLE ATTACH; Schema: relet; Owner: -
--

ALTER TABLE ONLY relet.finished ATTACH PARTITION relet.finished_20261125 FOR VALUES FROM ('01a21000-8800-0000-0000-000000000000') TO ('01a21526-e400-0000-0000-000000000000');


--
-- Name: finished_20261126; Type: TABLE ATTACH; Schema: relet; Owner: -
--

ALTER TABLE ONLY relet.finished ATTACH PARTITION relet.finished_20261126 FOR VALUES FROM ('01a21526-e400-0000-0000-000000000000') TO ('01a21a4d-4000-0000-0000-000000000000');


--
-- Data for Name: arming; Type: TABLE DATA; Schema: relet; Owner: -
--

INSERT INTO relet.arming VALUES (true, '2026-11-19 11:34:28.792624+05:30');


--
-- Data for Name: attempts; Type: TABLE DATA; Schema: relet; Owner: -
--

INSERT INTO relet.attempts VALUES ('01a1f267-e3f6-77fe-9dc8-8c7cf83dc057', 1, 1, 'vm:24700:89763729', '2026-11-19 11:34:20.209338+05:30', '2026-11-19 11:34:20.29606+05:30', NULL, '2026-11-19 11:34:25.209338+05:30', 'retried', 'ValueError: card declined

Traceback (most recent call last):
  File "/srv/tests/stored/shop.py", line 28, in refuse
    raise ValueError(reason)
ValueError: card declined
', 'builtins.ValueError');
INSERT INTO relet.attempts VALUES ('01a1f267-e3f6-77fe-9dc8-8c7cf83dc057', 2, 2, 'vm:24700:89763729', '2026-11-19 11:34:20.363743+05:30', '2026-11-19 11:34:20.389262+05:30', NULL, '2026-11-19 11:34:25.363743+05:30', 'failed', 'ValueError: card declined

Traceback (most recent call last):
  File "/srv/tests/stored/shop.py", line 28, in refuse
    raise ValueError(reason)
ValueError: card declined
', 'builtins.ValueError');
INSERT INTO relet.attempts VALUES ('01a1f267-f420-7cbf-be45-63c4c2402f66', 1, 1, 'vm:24987:c95d7f63', '2026-11-19 11:34:23.754037+05:30', '2026-11-19 11:34:23.840822+05:30', NULL, '2026-11-19 11:34:28.754037+05:30', 'snoozed', NULL, NULL);


--
-- Data for Name: audit; Type: TABLE DATA; Schema: relet; Owner: -
--

INSERT INTO relet.audit OVERRIDING SYSTEM VALUE VALUES (1, '01a1f267-f3f7-7b54-b622-be0d51315b55', '2026-11-19 11:34:21.402795+05:30', 'ada', 'cancel', '01a1f267-f3ee-7e5c-8b03-f8ecab7bd165', NULL);
INSERT INTO relet.audit OVERRIDING SYSTEM VALUE VALUES (2, '01a1f268-06e4-70d9-8afe-9bcb4ded45cf', '2026-11-19 11:34:26.215782+05:30', 'ada', 'pause_queue', 'paused', NULL);


--
-- Data for Name: dependencies; Type: TABLE DATA; Schema: relet; Owner: -
--

INSERT INTO relet.dependencies VALUES ('01a1f268-06a1-7cd4-979c-9c79922cbb77', '01a1f268-0666-77de-8d46-7c7a9ba2a23a', 0, NULL, NULL, NULL);
INSERT INTO relet.dependencies VALUES ('01a1f268-06a1-7cd4-979c-9c79922cbb77', '01a1f268-0668-7152-b204-e029c6cbfb21', 1, NULL, NULL, NULL);
INSERT INTO relet.dependencies VALUES ('01a1f268-06a1-7cd4-979c-9c79922cbb77', '01a1f268-066b-7c86-937c-3a808af90ad2', 2, NULL, NULL, NULL);


--
-- Data for Name: ended_sessions; Type: TABLE DATA; Schema: relet; Owner: -
--



--
-- Data for Name: finished_20261118; Type: TABLE DATA; Schema: relet; Owner: -
--



--
-- Data for Name: finished_20261119; Type: TABLE DATA; Schema: relet; Owner: -
--

INSERT INTO relet.finished_20261119 VALUES ('01a1f267-e3e3-7ca2-9237-ace453598e41', '01a1f267-e3e3-7ca2-9237-ace453598e41', '2026-11-19 11:34:17.259486+05:30', '2026-11-19 11:34:17.259486+05:30', '2026-11-19 11:34:20.187786+05:30', 1, 4, 0, 1, 0, 'succeeded', 0, false, 'default', 'double', '{"number":1}', 'e1eb316f-8666-4e9b-9fe1-049e9efc92f6', '2026-11-19 11:34:20.170021+05:30', NULL, 'vm:24700:89763729', NULL, NULL, NULL, '2', NULL, NULL, NULL);
INSERT INTO relet.finished_20261119 VALUES ('01a1f267-e3f1-7465-8296-062eec464dd9', '01a1f267-e3f1-7465-8296-062eec464dd9', '2026-11-19 11:34:17.266357+05:30', '2026-11-19 11:34:17.266357+05:30', '2026-11-19 11:34:20.256291+05:30', 1, 4, 0, 1, 0, 'succeeded', 0, true, 'default', 'first', '{"number":2}', 'e1eb316f-8666-4e9b-9fe1-049e9efc92f6', '2026-11-19 11:34:20.170021+05:30', NULL, 'vm:24700:89763729', NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO relet.finished_20261119 VALUES ('01a1f267-ef4e-72f1-99c1-357b2330f4e4', '01a1f267-e3f1-7465-8296-062eec464dd9', '2026-11-19 11:34:20.263942+05:30', '2026-11-19 11:34:20.263942+05:30', '2026-11-19 11:34:20.305887+05:30', 1, 4, 0, 1, 1, 'succeeded', 0, false, 'default', 'double', '{"number":2}', '073c104d-eb32-45c7-9438-b10e96c15093', '2026-11-19 11:34:20.276125+05:30', NULL, 'vm:24700:89763729', NULL, NULL, NULL, '4', NULL, NULL, NULL);
INSERT INTO relet.finished_20261119 VALUES ('01a1f267-f3ee-7e5c-8b03-f8ecab7bd165', '01a1f267-f3ee-7e5c-8b03-f8ecab7bd165', '2026-11-19 11:34:21.360904+05:30', '2026-11-19 12:34:21.360904+05:30', '2026-11-19 11:34:21.379598+05:30', 0, 4, 0, 0, 0, 'cancelled', 0, false, 'default', 'double', '{"number":3}', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);


--
-- Data for Name: finished_20261120; Type: TABLE DATA; Schema: relet; Owner: -
--



--
-- Data for Name: finished_20261121; Type: TABLE DATA; Schema: relet; Owner: -
--



--
-- Data for Name: finished_20261122; Type: TABLE DATA; Schema: relet; Owner: -
--



--
-- Data for Name: finished_20261123; Type: TABLE DATA; Schema: relet; Owner: -
--



--
-- Data for Name: finished_20261124; Type: TABLE DATA; Schema: relet; Owner: -
--



--
-- Data for Name: finished_20261125; Type: TABLE DATA; Schema: relet; Owner: -
--



--
-- Data for Name: finished_20261126; Type: TABLE DATA; Schema: relet; Owner: -
--



--
-- Data for Name: group_limits; Type: TABLE DATA; Schema: relet; Owner: -
--

INSERT INTO relet.group_limits VALUES ('limited', '*', 2);


--
-- Data for Name: group_nudges; Type: TABLE DATA; Schema: relet; Owner: -
--

INSERT INTO relet.group_nudges OVERRIDING SYSTEM VALUE VALUES ('limited', 1, 'a');
INSERT INTO relet.group_nudges OVERRIDING SYSTEM VALUE VALUES ('limited', 2, 'a');
INSERT INTO relet.group_nudges OVERRIDING SYSTEM VALUE VALUES ('limited', 3, 'b');


--
-- Data for Name: jobs; Type: TABLE DATA; Schema: relet; Owner: -
--

INSERT INTO relet.jobs VALUES ('01a1f267-e3f6-77fe-9dc8-8c7cf83dc057', '01a1f267-e3f6-77fe-9dc8-8c7cf83dc057', 6, '2026-11-19 11:34:17.284195+05:30', '2026-11-19 11:34:20.304633+05:30', 2, 2, 0, 2, 0, 0, 0, 'failed', 0, 0, 0, true, false, true, false, 'default', 'refuse', '{"reason":"card declined"}', '2a3a1015-fb7c-491a-af6d-1896f2cf8be5', NULL, NULL, NULL, '2026-11-19 11:34:20.389262+05:30', NULL, NULL, NULL, 'blocked', NULL, NULL, NULL, '{"backoff":[0.01,0.01,2.0,true]}', NULL, 'ValueError: card declined

Traceback (most recent call last):
  File "/srv/tests/stored/shop.py", line 28, in refuse
    raise ValueError(reason)
ValueError: card declined
', NULL, NULL, NULL);
INSERT INTO relet.jobs VALUES ('01a1f267-f420-7cbf-be45-63c4c2402f66', '01a1f267-f420-7cbf-be45-63c4c2402f66', 8, '2026-11-19 11:34:21.408357+05:30', '2036-11-26 11:34:23.840822+05:30', 0, 4, 0, 1, 0, 0, 0, 'pending', 0, 0, 0, false, false, false, false, 'default', 'approve', '{"amount":7}', '91777c6d-d927-4736-bbe8-b3315a23bc7b', NULL, NULL, NULL, NULL, NULL, NULL, 'time', NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'answer', NULL, NULL);
INSERT INTO relet.jobs VALUES ('01a1f267-fdc7-7f00-8161-ff3378e208a4', '01a1f267-fdc7-7f00-8161-ff3378e208a4', 9, '2026-11-19 11:34:23.880622+05:30', '2026-11-19 11:34:23.880622+05:30', 1, 4, 0, 1, 0, 0, 0, 'running', 0, 0, 0, false, false, false, false, 'abandoned', 'die', '{"folder":"/tmp/tmp409dy35f"}', 'e0578acb-bafa-46e5-9ef5-5daf76bfa0c2', '2026-11-19 11:34:26.057793+05:30', '2026-11-19 11:34:31.057793+05:30', NULL, NULL, NULL, 'vm:25168:24c6a569', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO relet.jobs VALUES ('01a1f268-0666-77de-8d46-7c7a9ba2a23a', '01a1f268-0666-77de-8d46-7c7a9ba2a23a', 10, '2026-11-19 11:34:26.087734+05:30', '2026-11-19 11:34:26.087734+05:30', 0, 4, 0, 0, 0, 0, 0, 'queued', 0, 0, 0, false, false, false, false, 'waiting', 'double', '{"number":0}', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO relet.jobs VALUES ('01a1f268-0668-7152-b204-e029c6cbfb21', '01a1f268-0668-7152-b204-e029c6cbfb21', 11, '2026-11-19 11:34:26.088501+05:30', '2026-11-19 11:34:26.088501+05:30', 0, 4, 0, 0, 0, 0, 0, 'queued', 1, -1, 0, false, false, false, false, 'waiting', 'double', '{"number":1}', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO relet.jobs VALUES ('01a1f268-066b-7c86-937c-3a808af90ad2', '01a1f268-066b-7c86-937c-3a808af90ad2', 12, '2026-11-19 11:34:26.091668+05:30', '2026-11-19 11:34:26.091668+05:30', 0, 4, 0, 0, 0, 0, 0, 'queued', 2, -2, 0, false, false, false, false, 'waiting', 'double', '{"number":2}', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO relet.jobs VALUES ('01a1f268-066c-7767-8b07-5d9c9411d62b', '01a1f268-066c-7767-8b07-5d9c9411d62b', 13, '2026-11-19 11:34:26.095183+05:30', '2026-11-19 11:34:27.095183+05:30', 0, 4, 0, 0, 0, 0, 0, 'pending', 0, 0, 0, false, false, false, false, 'waiting', 'double', '{"number":10}', NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'time', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO relet.jobs VALUES ('01a1f268-0676-7a78-aa83-e1e19d583d7b', '01a1f268-0676-7a78-aa83-e1e19d583d7b', 14, '2026-11-19 11:34:26.106766+05:30', '2026-11-19 11:34:26.106766+05:30', 0, 4, 0, 0, 0, 0, 0, 'pending', 0, 0, 0, false, false, false, false, 'waiting', 'double', '{"number":11}', NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'target', 'blocked', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO relet.jobs VALUES ('01a1f268-0684-7c96-8ed9-c613876c9187', '01a1f268-0684-7c96-8ed9-c613876c9187', 15, '2026-11-19 11:34:26.125743+05:30', '2026-11-19 11:34:26.125743+05:30', 0, 4, 0, 0, 0, 0, 0, 'queued', 0, 0, 0, false, false, false, false, 'waiting', 'double', '{"number":12}', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'once', NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO relet.jobs VALUES ('01a1f268-0695-70a0-af35-8b9a5ab89599', '01a1f268-0695-70a0-af35-8b9a5ab89599', 16, '2026-11-19 11:34:26.142209+05:30', '2026-11-19 11:34:26.142209+05:30', 0, 4, 0, 0, 0, 0, 0, 'queued', 0, 0, 0, false, false, false, true, 'waiting', 'double', '{"number":13}', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'window', NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO relet.jobs VALUES ('01a1f268-06a1-7cd4-979c-9c79922cbb77', '01a1f268-06a1-7cd4-979c-9c79922cbb77', 17, '2026-11-19 11:34:26.17168+05:30', '2026-11-19 11:34:26.17168+05:30', 0, 4, 0, 0, 0, 3, 3, 'pending', 0, 0, 0, false, false, false, false, 'waiting', 'collect', '{}', NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'jobs', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO relet.jobs VALUES ('01a1f268-06c5-7afc-9f0e-de50dd85f7fb', '01a1f268-06c5-7afc-9f0e-de50dd85f7fb', 18, '2026-11-19 11:34:26.181416+05:30', '2026-11-19 11:34:26.181416+05:30', 0, 4, 0, 0, 0, 0, 0, 'paused', 0, 0, 0, false, false, false, false, 'waiting', 'double', '{"number":14}', NULL, NULL, NULL, NULL, '2026-11-19 11:34:26.196146+05:30', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO relet.jobs VALUES ('01a1f268-06d8-72f6-a79c-d0fed068886c', '01a1f268-06d8-72f6-a79c-d0fed068886c', 19, '2026-11-19 11:34:26.200389+05:30', '2026-11-19 11:34:26.200389+05:30', 0, 4, 0, 0, 0, 0, 0, 'queued', 0, 0, 0, false, false, false, false, 'paused', 'double', '{"number":15}', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO relet.jobs VALUES ('01a1f268-06d8-7045-bf92-9c8616b790ed', '01a1f268-06d8-7045-bf92-9c8616b790ed', 20, '2026-11-19 11:34:26.201284+05:30', '2026-11-19 11:34:26.201284+05:30', 0, 4, 0, 0, 0, 0, 0, 'queued', 0, 0, 0, false, false, false, false, 'limited', 'double', '{"number":0}', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'a', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO relet.jobs VALUES ('01a1f268-06dc-7dde-8106-f183750b2200', '01a1f268-06dc-7dde-8106-f183750b2200', 21, '2026-11-19 11:34:26.206104+05:30', '2026-11-19 11:34:26.206104+05:30', 0, 4, 0, 0, 0, 0, 0, 'queued', 0, 0, 0, false, false, false, false, 'limited', 'double', '{"number":1}', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'a', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO relet.jobs VALUES ('01a1f268-06e2-73b6-ad2a-82a832068228', '01a1f268-06e2-73b6-ad2a-82a832068228', 22, '2026-11-19 11:34:26.211989+05:30', '2026-11-19 11:34:26.211989+05:30', 0, 4, 0, 0, 0, 0, 0, 'queued', 0, 0, 0, false, false, false, false, 'limited', 'double', '{"number":2}', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'b', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);


--
-- Data for Name: keys; Type: TABLE DATA; Schema: relet; Owner: -
--

INSERT INTO relet.keys VALUES ('once', '01a1f268-0684-7c96-8ed9-c613876c9187', NULL);
INSERT INTO relet.keys VALUES ('window', '01a1f268-0695-70a0-af35-8b9a5ab89599', '2026-11-19 11:35:26.134533+05:30');


--
-- Data for Name: locks; Type: TABLE DATA; Schema: relet; Owner: -
--

INSERT INTO relet.locks VALUES ('promote', '-infinity');
INSERT INTO relet.locks VALUES ('partitions', '-infinity');
INSERT INTO relet.locks VALUES ('prune', '-infinity');


--
-- Data for Name: migration_lock; Type: TABLE DATA; Schema: relet; Owner: -
--

INSERT INTO relet.migration_lock VALUES (true);


--
-- Data for Name: migrations; Type: TABLE DATA; Schema: relet; Owner: -
--

INSERT INTO relet.migrations VALUES (1, '2026-11-19 11:34:17.116169+05:30', 1, '0.1.0');
INSERT INTO relet.migrations VALUES (2, '2026-11-19 11:34:17.162552+05:30', 1, '0.1.0');
INSERT INTO relet.migrations VALUES (3, '2026-11-19 11:34:17.168647+05:30', 1, '0.1.0');
INSERT INTO relet.migrations VALUES (4, '2026-11-19 11:34:17.185918+05:30', 1, '0.1.0');
INSERT INTO relet.migrations VALUES (5, '2026-11-19 11:34:17.187382+05:30', 1, '0.1.0');
INSERT INTO relet.migrations VALUES (6, '2026-11-19 11:34:17.187731+05:30', 1, '0.1.0');
INSERT INTO relet.migrations VALUES (7, '2026-11-19 11:34:17.199381+05:30', 1, '0.1.0');
INSERT INTO relet.migrations VALUES (8, '2026-11-19 11:34:17.203879+05:30', 1, '0.1.0');


--
-- Data for Name: nudges; Type: TABLE DATA; Schema: relet; Owner: -
--

INSERT INTO relet.nudges OVERRIDING SYSTEM VALUE VALUES (6, 'target', 'blocked', NULL);
INSERT INTO relet.nudges OVERRIDING SYSTEM VALUE VALUES (7, 'job', '01a1f268-06a1-7cd4-979c-9c79922cbb77', NULL);


--
-- Data for Name: operations; Type: TABLE DATA; Schema: relet; Owner: -
--

INSERT INTO relet.operations VALUES ('01a1f267-e3b4-705c-b447-9b6fbbd9e1a6', 'limit_queue', 'limited', NULL, '{}', '2026-11-19 11:34:17.22307+05:30');
INSERT INTO relet.operations VALUES ('01a1f267-eec9-746d-86e3-6fc8e1723cfa', 'restored', 'postgresql://postgres@/d_f2b5c00f632b', NULL, '{}', '2026-11-19 11:34:20.045717+05:30');
INSERT INTO relet.operations VALUES ('01a1f267-f3f7-765b-b5a1-13e3df70de89', 'cancel', '01a1f267-f3ee-7e5c-8b03-f8ecab7bd165', NULL, '{"jobs":[{"id":"01a1f267-f3ee-7e5c-8b03-f8ecab7bd165","task":"double","queue":"default","state":"cancelled","priority":0,"payload":"null","attempt":0,"max_attempts":4,"losses":0,"version":0,"chain":"01a1f267-f3ee-7e5c-8b03-f8ecab7bd165","position":0,"created_at":"2026-11-19T06:04:21.360904Z","run_at":"2026-11-19T07:04:21.360904Z","started_at":null,"finished_at":"2026-11-19T06:04:21.379598Z","wait":null,"target":null,"holds":false,"unique":null,"worker":null,"expires_at":null,"request":null,"result":null,"error":null,"continued":false,"progress":null,"group":null,"awaits":null,"context":null,"renewed_at":null,"start_by":null,"tags":[],"rerun_of":null,"error_type":null,"existing":false}]}', '2026-11-19 11:34:21.376087+05:30');
INSERT INTO relet.operations VALUES ('01a1f268-06c5-7a9d-b818-e5203da61989', 'pause', '01a1f268-06c5-7afc-9f0e-de50dd85f7fb', NULL, '{"jobs":[{"id":"01a1f268-06c5-7afc-9f0e-de50dd85f7fb","task":"double","queue":"waiting","state":"paused","priority":0,"payload":"null","attempt":0,"max_attempts":4,"losses":0,"version":0,"chain":"01a1f268-06c5-7afc-9f0e-de50dd85f7fb","position":0,"created_at":"2026-11-19T06:04:26.181416Z","run_at":"2026-11-19T06:04:26.181416Z","started_at":null,"finished_at":"2026-11-19T06:04:26.196146Z","wait":null,"target":null,"holds":false,"unique":null,"worker":null,"expires_at":null,"request":null,"result":null,"error":null,"continued":false,"progress":null,"group":null,"awaits":null,"context":null,"renewed_at":null,"start_by":null,"tags":[],"rerun_of":null,"error_type":null,"existing":false}]}', '2026-11-19 11:34:26.186435+05:30');
INSERT INTO relet.operations VALUES ('01a1f268-06e4-7b19-89e6-f0da20ce2b79', 'pause_queue', 'paused', NULL, '{}', '2026-11-19 11:34:26.213214+05:30');


--
-- Data for Name: pulse; Type: TABLE DATA; Schema: relet; Owner: -
--

INSERT INTO relet.pulse VALUES (true, '2026-11-19 11:34:26.015119+05:30', '-infinity', '16521 16509 16499 16721 16569 16535', '-infinity', 1.039746, '-infinity');


--
-- Data for Name: quarantine; Type: TABLE DATA; Schema: relet; Owner: -
--

INSERT INTO relet.quarantine VALUES (true, NULL, '2026-11-19 11:34:29.029886+05:30');


--
-- Data for Name: queue_samples; Type: TABLE DATA; Schema: relet; Owner: -
--

INSERT INTO relet.queue_samples VALUES ('default', 1, 2, 0, 0, 0, 2.872012, '2026-11-19 11:34:20.145264+05:30');
INSERT INTO relet.queue_samples VALUES ('limited', 0, 0, 0, 0, 0, NULL, '2026-11-19 11:34:20.145264+05:30');


--
-- Data for Name: queues; Type: TABLE DATA; Schema: relet; Owner: -
--

INSERT INTO relet.queues VALUES ('limited', false, NULL, true, true, true, NULL, DEFAULT, NULL);
INSERT INTO relet.queues VALUES ('paused', true, NULL, false, false, false, NULL, DEFAULT, NULL);


--
-- Data for Name: rates; Type: TABLE DATA; Schema: relet; Owner: -
--

INSERT INTO relet.rates VALUES ('limited', '*', 5, 1);


--
-- Data for Name: ready_groups; Type: TABLE DATA; Schema: relet; Owner: -
--



--
-- Data for Name: reruns; Type: TABLE DATA; Schema: relet; Owner: -
--



--
-- Data for Name: schedules; Type: TABLE DATA; Schema: relet; Owner: -
--

INSERT INTO relet.schedules VALUES ('report', 'report', '{"draft":{"id":"01a1f267-edc6-7df9-a53c-2940f33092cf","task":"report","payload":"{}","queue":"default","priority":0,"run_at":null,"delay":null,"target":null,"group":null,"unique":null,"unique_for":null,"replace":false,"depends_on":[],"policy":{"max_attempts":4,"backoff":{"base":0.5,"max":30.0,"factor":2.0,"jitter":true},"lease":null,"timeout":null,"on_expired":"retry","on_failure":"hold","on_dependency_failure":"hold","follow_up":null},"context":null,"fresh":true,"start_by":null,"tags":[],"rerun_of":null},"cron":"0 3 * * *"}', '{"draft":{"id":"","task":"report","payload":"{}","queue":"default","priority":0,"run_at":null,"delay":null,"target":null,"group":null,"unique":null,"unique_for":null,"replace":false,"depends_on":[],"policy":{"max_attempts":4,"backoff":{"base":0.5,"max":30.0,"factor":2.0,"jitter":true},"lease":null,"timeout":null,"on_expired":"retry","on_failure":"hold","on_dependency_failure":"hold","follow_up":null},"context":null,"fresh":true,"start_by":null,"tags":[],"rerun_of":null},"cron":"0 3 * * *"}', false, '2026-11-20 08:30:00+05:30', '2026-11-19 11:34:20.11553+05:30', '2026-11-19 11:34:20.11553+05:30');


--
-- Data for Name: signals; Type: TABLE DATA; Schema: relet; Owner: -
--



--
-- Data for Name: sleepers; Type: TABLE DATA; Schema: relet; Owner: -
--

INSERT INTO relet.sleepers VALUES (196402575, 1043447546, '{default}', '{approve,collect,die,double,first,refuse,report}', '2026-11-19 11:34:25.193757+05:30');
INSERT INTO relet.sleepers VALUES (139465062, 1043447546, '{default}', '{approve,collect,die,double,first,refuse,report}', '2026-11-19 11:34:28.792624+05:30');
INSERT INTO relet.sleepers VALUES (60509207, 209192729, '{abandoned}', '{approve,collect,die,double,first,refuse,report}', '2026-11-19 11:34:31.074505+05:30');


--
-- Data for Name: starts; Type: TABLE DATA; Schema: relet; Owner: -
--



--
-- Data for Name: stats; Type: TABLE DATA; Schema: relet; Owner: -
--

INSERT INTO relet.stats VALUES (60, '2026-11-19 11:34:00+05:30', '', 'sampled', 0, true, 1);
INSERT INTO relet.stats VALUES (-60, '2026-11-19 11:34:00+05:30', '*', 'gauge.failed', 0, true, 0);
INSERT INTO relet.stats VALUES (-60, '2026-11-19 11:34:00+05:30', '*', 'gauge.oldest', 0, true, 2.872012);
INSERT INTO relet.stats VALUES (-60, '2026-11-19 11:34:00+05:30', '*', 'gauge.paused_jobs', 0, true, 0);
INSERT INTO relet.stats VALUES (-60, '2026-11-19 11:34:00+05:30', '*', 'gauge.pending', 0, true, 1);
INSERT INTO relet.stats VALUES (-60, '2026-11-19 11:34:00+05:30', '*', 'gauge.queued', 0, true, 2);
INSERT INTO relet.stats VALUES (-60, '2026-11-19 11:34:00+05:30', '*', 'gauge.running', 0, true, 0);
INSERT INTO relet.stats VALUES (60, '2026-11-19 11:34:00+05:30', 'default', 'gauge.failed', 0, true, 0);
INSERT INTO relet.stats VALUES (60, '2026-11-19 11:34:00+05:30', 'default', 'gauge.oldest', 0, true, 2.872012);
INSERT INTO relet.stats VALUES (60, '2026-11-19 11:34:00+05:30', 'default', 'gauge.paused_jobs', 0, true, 0);
INSERT INTO relet.stats VALUES (60, '2026-11-19 11:34:00+05:30', 'default', 'gauge.pending', 0, true, 1);
INSERT INTO relet.stats VALUES (60, '2026-11-19 11:34:00+05:30', 'default', 'gauge.queued', 0, true, 2);
INSERT INTO relet.stats VALUES (60, '2026-11-19 11:34:00+05:30', 'default', 'gauge.running', 0, true, 0);
INSERT INTO relet.stats VALUES (60, '2026-11-19 11:34:00+05:30', 'limited', 'gauge.failed', 0, true, 0);
INSERT INTO relet.stats VALUES (60, '2026-11-19 11:34:00+05:30', 'limited', 'gauge.oldest', 0, true, 0);
INSERT INTO relet.stats VALUES (60, '2026-11-19 11:34:00+05:30', 'limited', 'gauge.paused_jobs', 0, true, 0);
INSERT INTO relet.stats VALUES (60, '2026-11-19 11:34:00+05:30', 'limited', 'gauge.pending', 0, true, 0);
INSERT INTO relet.stats VALUES (60, '2026-11-19 11:34:00+05:30', 'limited', 'gauge.queued', 0, true, 0);
INSERT INTO relet.stats VALUES (60, '2026-11-19 11:34:00+05:30', 'limited', 'gauge.running', 0, true, 0);


--
-- Data for Name: steps; Type: TABLE DATA; Schema: relet; Owner: -
--

INSERT INTO relet.steps VALUES ('01a1f267-f420-7cbf-be45-63c4c2402f66', 'step', 'charge', '"charged 7"', NULL, '2026-11-19 11:34:23.814379+05:30', '2026-11-19 11:34:23.812946+05:30', '{"amount":7}');


--
-- Data for Name: tags; Type: TABLE DATA; Schema: relet; Owner: -
--



--
-- Data for Name: ticks; Type: TABLE DATA; Schema: relet; Owner: -
--



--
-- Data for Name: workers; Type: TABLE DATA; Schema: relet; Owner: -
--

INSERT INTO relet.workers VALUES ('vm:24700:89763729', 'vm', 24700, '{"name":"vm:24700:89763729","host":"vm","pid":24700,"queues":["default"],"slots":10,"tasks":["approve","collect","die","double","first","refuse","report"],"lease":5.0,"version":"0.1.0"}', 0, false, '83396c5b-1b92-420c-97bc-5d9bffe18f20', '2026-11-19 11:34:20.113085+05:30', '2026-11-19 11:34:20.113085+05:30');
INSERT INTO relet.workers VALUES ('vm:24987:c95d7f63', 'vm', 24987, '{"name":"vm:24987:c95d7f63","host":"vm","pid":24987,"queues":["default"],"slots":10,"tasks":["approve","collect","die","double","first","refuse","report"],"lease":5.0,"version":"0.1.0"}', 0, false, '7c7c18fd-96cb-4f7d-8e39-ba4970f1b529', '2026-11-19 11:34:23.715869+05:30', '2026-11-19 11:34:23.715869+05:30');
INSERT INTO relet.workers VALUES ('vm:25168:24c6a569', 'vm', 25168, '{"name":"vm:25168:24c6a569","host":"vm","pid":25168,"queues":["abandoned"],"slots":10,"tasks":["approve","collect","die","double","first","refuse","report"],"lease":5.0,"version":"0.1.0"}', 0, false, '818fb0e3-9e0b-4b82-b455-e1649f7ba1b0', '2026-11-19 11:34:26.041095+05:30', '2026-11-19 11:34:26.041095+05:30');


--
-- Name: audit_seq_seq; Type: SEQUENCE SET; Schema: relet; Owner: -
--

SELECT pg_catalog.setval('relet.audit_seq_seq', 2, true);


--
-- Name: group_nudges_id_seq; Type: SEQUENCE SET; Schema: relet; Owner: -
--

SELECT pg_catalog.setval('relet.group_nudges_id_seq', 3, true);


--
-- Name: job_seq; Type: SEQUENCE SET; Schema: relet; Owner: -
--

SELECT pg_catalog.setval('relet.job_seq', 22, true);


--
-- Name: nudges_id_seq; Type: SEQUENCE SET; Schema: relet; Owner: -
--

SELECT pg_catalog.setval('relet.nudges_id_seq', 7, true);


--
-- Name: arming arming_pkey; Type: CONSTRAINT; Schema: relet; Owner: -
--

ALTER TABLE ONLY relet.arming
    ADD CONSTRAINT arming_pkey PRIMARY KEY (single);


--
-- Name: attempts attempts_pkey; Type: CONSTRAINT; Schema: relet; Owner: -
--

ALTER TABLE ONLY relet.attempts
    ADD CONSTRAINT attempts_pkey PRIMARY KEY (job, version);


--
-- Name: audit audit_id_key; Type: CONSTRAINT; Schema: relet; Owner: -
--

ALTER TABLE ONLY relet.audit
    ADD CONSTRAINT audit_id_key UNIQUE (id);


--
-- Name: audit audit_pkey; Type: CONSTRAINT; Schema: relet; Owner: -
--

ALTER TABLE ONLY relet.audit
    ADD CONSTRAINT audit_pkey PRIMARY KEY (seq);


--
-- Name: dependencies dependencies_pkey; Type: CONSTRAINT; Schema: relet; Owner: -
--

ALTER TABLE ONLY relet.dependencies
    ADD CONSTRAINT dependencies_pkey PRIMARY KEY (job, depends_on);


--
-- Name: ended_sessions ended_sessions_pkey; Type: CONSTRAINT; Schema: relet; Owner: -
--

ALTER TABLE ONLY relet.ended_sessions
    ADD CONSTRAINT ended_sessions_pkey PRIMARY KEY (id);


--
-- Name: finished finished_pkey; Type: CONSTRAINT; Schema: relet; Owner: -
--

ALTER TABLE ONLY relet.finished
    ADD CONSTRAINT finished_pkey PRIMARY KEY (id);


--
-- Name: finished_20261118 finished_20261118_pkey; Type: CONSTRAINT; Schema: relet; Owner: -
--

ALTER TABLE ONLY relet.finished_20261118
    ADD CONSTRAINT finished_20261118_pkey PRIMARY KEY (id);


--
-- Name: finished_20261119 finished_20261119_pkey; Type: CONSTRAINT; Schema: relet; Owner: -
--

ALTER TABLE ONLY relet.finished_20261119
    ADD CONSTRAINT finished_20261119_pkey PRIMARY KEY (id);


--
-- Name: finished_20261120 finished_20261120_pkey; Type: CONSTRAINT; Schema: relet; Owner: -
--

ALTER TABLE ONLY relet.finished_20261120
    ADD CONSTRAINT finished_20261120_pkey PRIMARY KEY (id);


--
-- Name: finished_20261121 finished_20261121_pkey; Type: CONSTRAINT; Schema: relet; Owner: -
--

ALTER TABLE ONLY relet.finished_20261121
    ADD CONSTRAINT finished_20261121_pkey PRIMARY KEY (id);


--
-- Name: finished_20261122 finished_20261122_pkey; Type: CONSTRAINT; Schema: relet; Owner: -
--

ALTER TABLE ONLY relet.finished_20261122
    ADD CONSTRAINT finished_20261122_pkey PRIMARY KEY (id);


--
-- Name: finished_20261123 finished_20261123_pkey; Type: CONSTRAINT; Schema: relet; Owner: -
--

ALTER TABLE ONLY relet.finished_20261123
    ADD CONSTRAINT finished_20261123_pkey PRIMARY KEY (id);


--
-- Name: finished_20261124 finished_20261124_pkey; Type: CONSTRAINT; Schema: relet; Owner: -
--

ALTER TABLE ONLY relet.finished_20261124
    ADD CONSTRAINT finished_20261124_pkey PRIMARY KEY (id);


--
-- Name: finished_20261125 finished_20261125_pkey; Type: CONSTRAINT; Schema: relet; Owner: -
--

ALTER TABLE ONLY relet.finished_20261125
    ADD CONSTRAINT finished_20261125_pkey PRIMARY KEY (id);


--
-- Name: finished_20261126 finished_20261126_pkey; Type: CONSTRAINT; Schema: relet; Owner: -
--

ALTER TABLE ONLY relet.finished_20261126
    ADD CONSTRAINT finished_20261126_pkey PRIMARY KEY (id);


--
-- Name: group_limits group_limits_pkey; Type: CONSTRAINT; Schema: relet; Owner: -
--

ALTER TABLE ONLY relet.group_limits
    ADD CONSTRAINT group_limits_pkey PRIMARY KEY (queue, group_key);


--
-- Name: group_nudges group_nudges_pkey; Type: CONSTRAINT; Schema: relet; Owner: -
--

ALTER TABLE ONLY relet.group_nudges
    ADD CONSTRAINT group_nudges_pkey PRIMARY KEY (queue, id);


--
-- Name: jobs jobs_pkey; Type: CONSTRAINT; Schema: relet; Owner: -
--

ALTER TABLE ONLY relet.jobs
    ADD CONSTRAINT jobs_pkey PRIMARY KEY (id);


--
-- Name: keys keys_pkey; Type: CONSTRAINT; Schema: relet; Owner: -
--

ALTER TABLE ONLY relet.keys
    ADD CONSTRAINT keys_pkey PRIMARY KEY (key);


--
-- Name: locks locks_pkey; Type: CONSTRAINT; Schema: relet; Owner: -
--

ALTER TABLE ONLY relet.locks
    ADD CONSTRAINT locks_pkey PRIMARY KEY (name);


--
-- Name: migration_lock migration_lock_pkey; Type: CONSTRAINT; Schema: relet; Owner: -
--

ALTER TABLE ONLY relet.migration_lock
    ADD CONSTRAINT migration_lock_pkey PRIMARY KEY (single);


--
-- Name: migrations migrations_pkey; Type: CONSTRAINT; Schema: relet; Owner: -
--

ALTER TABLE ONLY relet.migrations
    ADD CONSTRAINT migrations_pkey PRIMARY KEY (version);


--
-- Name: nudges nudges_pkey; Type: CONSTRAINT; Schema: relet; Owner: -
--

ALTER TABLE ONLY relet.nudges
    ADD CONSTRAINT nudges_pkey PRIMARY KEY (id);


--
-- Name: operations operations_pkey; Type: CONSTRAINT; Schema: relet; Owner: -
--

ALTER TABLE ONLY relet.operations
    ADD CONSTRAINT operations_pkey PRIMARY KEY (id);


--
-- Name: pulse pulse_pkey; Type: CONSTRAINT; Schema: relet; Owner: -
--

ALTER TABLE ONLY relet.pulse
    ADD CONSTRAINT pulse_pkey PRIMARY KEY (single);


--
-- Name: quarantine quarantine_pkey; Type: CONSTRAINT; Schema: relet; Owner: -
--

ALTER TABLE ONLY relet.quarantine
    ADD CONSTRAINT quarantine_pkey PRIMARY KEY (single);


--
-- Name: queue_samples queue_samples_pkey; Type: CONSTRAINT; Schema: relet; Owner: -
--

ALTER TABLE ONLY relet.queue_samples
    ADD CONSTRAINT queue_samples_pkey PRIMARY KEY (queue);


--
-- Name: queues queues_pkey; Type: CONSTRAINT; Schema: relet; Owner: -
--

ALTER TABLE ONLY relet.queues
    ADD CONSTRAINT queues_pkey PRIMARY KEY (queue);


--
-- Name: rates rates_pkey; Type: CONSTRAINT; Schema: relet; Owner: -
--

ALTER TABLE ONLY relet.rates
    ADD CONSTRAINT rates_pkey PRIMARY KEY (queue, group_key);


--
-- Name: ready_groups ready_groups_pkey; Type: CONSTRAINT; Schema: relet; Owner: -
--

ALTER TABLE ONLY relet.ready_groups
    ADD CONSTRAINT ready_groups_pkey PRIMARY KEY (queue, group_key);


--
-- Name: reruns reruns_pkey; Type: CONSTRAINT; Schema: relet; Owner: -
--

ALTER TABLE ONLY relet.reruns
    ADD CONSTRAINT reruns_pkey PRIMARY KEY (job);


--
-- Name: schedules schedules_pkey; Type: CONSTRAINT; Schema: relet; Owner: -
--

ALTER TABLE ONLY relet.schedules
    ADD CONSTRAINT schedules_pkey PRIMARY KEY (name);


--
-- Name: signals signals_pkey; Type: CONSTRAINT; Schema: relet; Owner: -
--

ALTER TABLE ONLY relet.signals
    ADD CONSTRAINT signals_pkey PRIMARY KEY (job, name);


--
-- Name: sleepers sleepers_pkey; Type: CONSTRAINT; Schema: relet; Owner: -
--

ALTER TABLE ONLY relet.sleepers
    ADD CONSTRAINT sleepers_pkey PRIMARY KEY (key);


--
-- Name: starts starts_pkey; Type: CONSTRAINT; Schema: relet; Owner: -
--

ALTER TABLE ONLY relet.starts
    ADD CONSTRAINT starts_pkey PRIMARY KEY (queue, group_key, at);


--
-- Name: stats stats_pkey; Type: CONSTRAINT; Schema: relet; Owner: -
--

ALTER TABLE ONLY relet.stats
    ADD CONSTRAINT stats_pkey PRIMARY KEY (step, at, queue, name, bucket);


--
-- Name: steps steps_pkey; Type: CONSTRAINT; Schema: relet; Owner: -
--

ALTER TABLE ONLY relet.steps
    ADD CONSTRAINT steps_pkey PRIMARY KEY (job, kind, name);


--
-- Name: tags tags_pkey; Type: CONSTRAINT; Schema: relet; Owner: -
--

ALTER TABLE ONLY relet.tags
    ADD CONSTRAINT tags_pkey PRIMARY KEY (tag, job);


--
-- Name: ticks ticks_pkey; Type: CONSTRAINT; Schema: relet; Owner: -
--

ALTER TABLE ONLY relet.ticks
    ADD CONSTRAINT ticks_pkey PRIMARY KEY (schedule, tick);


--
-- Name: workers workers_pkey; Type: CONSTRAINT; Schema: relet; Owner: -
--

ALTER TABLE ONLY relet.workers
    ADD CONSTRAINT workers_pkey PRIMARY KEY (name);


--
-- Name: audit_subject; Type: INDEX; Schema: relet; Owner: -
--

CREATE INDEX audit_subject ON relet.audit USING btree (subject);


--
-- Name: dependencies_copies; Type: INDEX; Schema: relet; Owner: -
--

CREATE INDEX dependencies_copies ON relet.dependencies USING btree (depends_on) WHERE (result IS NOT NULL);


--
-- Name: dependencies_open; Type: INDEX; Schema: relet; Owner: -
--

CREATE INDEX dependencies_open ON relet.dependencies USING btree (depends_on, job) WHERE (state IS NULL);


--
-- Name: ended_sessions_until; Type: INDEX; Schema: relet; Owner: -
--

CREATE INDEX ended_sessions_until ON relet.ended_sessions USING btree (until);


--
-- Name: finished_chain; Type: INDEX; Schema: relet; Owner: -
--

CREATE INDEX finished_chain ON ONLY relet.finished USING btree (chain) WHERE ("position" > 0);


--
-- Name: finished_20261118_chain_idx; Type: INDEX; Schema: relet; Owner: -
--

CREATE INDEX finished_20261118_chain_idx ON relet.finished_20261118 USING btree (chain) WHERE ("position" > 0);


--
-- Name: finished_20261119_chain_idx; Type: INDEX; Schema: relet; Owner: -
--

CREATE INDEX finished_20261119_chain_idx ON relet.finished_20261119 USING btree (chain) WHERE ("position" > 0);


--
-- Name: finished_20261120_chain_idx; Type: INDEX; Schema: relet; Owner: -
--

CREATE INDEX finished_20261120_chain_idx ON relet.finished_20261120 USING btree (chain) WHERE ("position" > 0);


--
-- Name: finished_20261121_chain_idx; Type: INDEX; Schema: relet; Owner: -
--

CREATE INDEX finished_20261121_chain_idx ON relet.finished_20261121 USING btree (chain) WHERE ("position" > 0);


--
-- Name: finished_20261122_chain_idx; Type: INDEX; Schema: relet; Owner: -
--

CREATE INDEX finished_20261122_chain_idx ON relet.finished_20261122 USING btree (chain) WHERE ("position" > 0);


--
-- Name: finished_20261123_chain_idx; Type: INDEX; Schema: relet; Owner: -
--

CREATE INDEX finished_20261123_chain_idx ON relet.finished_20261123 USING btree (chain) WHERE ("position" > 0);


--
-- Name: finished_20261124_chain_idx; Type: INDEX; Schema: relet; Owner: -
--

CREATE INDEX finished_20261124_chain_idx ON relet.finished_20261124 USING btree (chain) WHERE ("position" > 0);


--
-- Name: finished_20261125_chain_idx; Type: INDEX; Schema: relet; Owner: -
--

CREATE INDEX finished_20261125_chain_idx ON relet.finished_20261125 USING btree (chain) WHERE ("position" > 0);


--
-- Name: finished_20261126_chain_idx; Type: INDEX; Schema: relet; Owner: -
--

CREATE INDEX finished_20261126_chain_idx ON relet.finished_20261126 USING btree (chain) WHERE ("position" > 0);


--
-- Name: jobs_chain; Type: INDEX; Schema: relet; Owner: -
--

CREATE UNIQUE INDEX jobs_chain ON relet.jobs USING btree (chain) WHERE ("position" > 0);


--
-- Name: jobs_claim; Type: INDEX; Schema: relet; Owner: -
--

CREATE INDEX jobs_claim ON relet.jobs USING btree (queue, suspect, rank, seq) WHERE (state = 'queued'::relet.job_state);


--
-- Name: jobs_due; Type: INDEX; Schema: relet; Owner: -
--

CREATE INDEX jobs_due ON relet.jobs USING btree (run_at, seq) WHERE (wait = 'time'::text);


--
-- Name: jobs_failed; Type: INDEX; Schema: relet; Owner: -
--

CREATE INDEX jobs_failed ON relet.jobs USING btree (stopped_at) WHERE (state = 'failed'::relet.job_state);


--
-- Name: jobs_group; Type: INDEX; Schema: relet; Owner: -
--

CREATE INDEX jobs_group ON relet.jobs USING btree (queue COLLATE "POSIX", suspect, group_key COLLATE "POSIX", rank, seq) WHERE ((state = 'queued'::relet.job_state) AND (group_key IS NOT NULL));


--
-- Name: jobs_group_running; Type: INDEX; Schema: relet; Owner: -
--

CREATE INDEX jobs_group_running ON relet.jobs USING btree (queue COLLATE "POSIX", group_key COLLATE "POSIX") WHERE ((state = 'running'::relet.job_state) AND (group_key IS NOT NULL));


--
-- Name: jobs_holder; Type: INDEX; Schema: relet; Owner: -
--

CREATE UNIQUE INDEX jobs_holder ON relet.jobs USING btree (target) WHERE holds;


--
-- Name: jobs_leased; Type: INDEX; Schema: relet; Owner: -
--

CREATE INDEX jobs_leased ON relet.jobs USING btree (expires_at) WHERE (expires_at IS NOT NULL);


--
-- Name: jobs_line; Type: INDEX; Schema: relet; Owner: -
--

CREATE INDEX jobs_line ON relet.jobs USING btree (target, seq) WHERE (wait = 'target'::text);


--
-- Name: jobs_start_by; Type: INDEX; Schema: relet; Owner: -
--

CREATE INDEX jobs_start_by ON relet.jobs USING btree (start_by) WHERE ((start_by IS NOT NULL) AND (version = 0));


--
-- Name: jobs_suspect; Type: INDEX; Schema: relet; Owner: -
--

CREATE INDEX jobs_suspect ON relet.jobs USING btree (queue, suspect) WHERE ((state = 'queued'::relet.job_state) AND (suspect > 0));


--
-- Name: jobs_tasks; Type: INDEX; Schema: relet; Owner: -
--

CREATE INDEX jobs_tasks ON relet.jobs USING btree (queue COLLATE "C", task COLLATE "C", suspect, rank, seq) WHERE (state = 'queued'::relet.job_state);


--
-- Name: keys_window; Type: INDEX; Schema: relet; Owner: -
--

CREATE INDEX keys_window ON relet.keys USING btree (until) WHERE (until IS NOT NULL);


--
-- Name: operations_age; Type: INDEX; Schema: relet; Owner: -
--

CREATE INDEX operations_age ON relet.operations USING btree (at);


--
-- Name: operations_subject; Type: INDEX; Schema: relet; Owner: -
--

CREATE INDEX operations_subject ON relet.operations USING btree (subject);


--
-- Name: reruns_of; Type: INDEX; Schema: relet; Owner: -
--

CREATE INDEX reruns_of ON relet.reruns USING btree (rerun_of);


--
-- Name: schedules_due; Type: INDEX; Schema: relet; Owner: -
--

CREATE INDEX schedules_due ON relet.schedules USING btree (next_at) WHERE (NOT paused);


--
-- Name: starts_latest; Type: INDEX; Schema: relet; Owner: -
--

CREATE INDEX starts_latest ON relet.starts USING btree (queue, at);


--
-- Name: tags_job; Type: INDEX; Schema: relet; Owner: -
--

CREATE INDEX tags_job ON relet.tags USING btree (job);


--
-- Name: ticks_age; Type: INDEX; Schema: relet; Owner: -
--

CREATE INDEX ticks_age ON relet.ticks USING btree (tick);


--
-- Name: ticks_jobs; Type: INDEX; Schema: relet; Owner: -
--

CREATE INDEX ticks_jobs ON relet.ticks USING btree (schedule, tick) WHERE (job IS NOT NULL);


--
-- Name: finished_20261118_chain_idx; Type: INDEX ATTACH; Schema: relet; Owner: -
--

ALTER INDEX relet.finished_chain ATTACH PARTITION relet.finished_20261118_chain_idx;


--
-- Name: finished_20261118_pkey; Type: INDEX ATTACH; Schema: relet; Owner: -
--

ALTER INDEX relet.finished_pkey ATTACH PARTITION relet.finished_20261118_pkey;


--
-- Name: finished_20261119_chain_idx; Type: INDEX ATTACH; Schema: relet; Owner: -
--

ALTER INDEX relet.finished_chain ATTACH PARTITION relet.finished_20261119_chain_idx;


--
-- Name: finished_20261119_pkey; Type: INDEX ATTACH; Schema: relet; Owner: -
--

ALTER INDEX relet.finished_pkey ATTACH PARTITION relet.finished_20261119_pkey;


--
-- Name: finished_20261120_chain_idx; Type: INDEX ATTACH; Schema: relet; Owner: -
--

ALTER INDEX relet.finished_chain ATTACH PARTITION relet.finished_20261120_chain_idx;


--
-- Name: finished_20261120_pkey; Type: INDEX ATTACH; Schema: relet; Owner: -
--

ALTER INDEX relet.finished_pkey ATTACH PARTITION relet.finished_20261120_pkey;


--
-- Name: finished_20261121_chain_idx; Type: INDEX ATTACH; Schema: relet; Owner: -
--

ALTER INDEX relet.finished_chain ATTACH PARTITION relet.finished_20261121_chain_idx;


--
-- Name: finished_20261121_pkey; Type: INDEX ATTACH; Schema: relet; Owner: -
--

ALTER INDEX relet.finished_pkey ATTACH PARTITION relet.finished_20261121_pkey;


--
-- Name: finished_20261122_chain_idx; Type: INDEX ATTACH; Schema: relet; Owner: -
--

ALTER INDEX relet.finished_chain ATTACH PARTITION relet.finished_20261122_chain_idx;


--
-- Name: finished_20261122_pkey; Type: INDEX ATTACH; Schema: relet; Owner: -
--

ALTER INDEX relet.finished_pkey ATTACH PARTITION relet.finished_20261122_pkey;


--
-- Name: finished_20261123_chain_idx; Type: INDEX ATTACH; Schema: relet; Owner: -
--

ALTER INDEX relet.finished_chain ATTACH PARTITION relet.finished_20261123_chain_idx;


--
-- Name: finished_20261123_pkey; Type: INDEX ATTACH; Schema: relet; Owner: -
--

ALTER INDEX relet.finished_pkey ATTACH PARTITION relet.finished_20261123_pkey;


--
-- Name: finished_20261124_chain_idx; Type: INDEX ATTACH; Schema: relet; Owner: -
--

ALTER INDEX relet.finished_chain ATTACH PARTITION relet.finished_20261124_chain_idx;


--
-- Name: finished_20261124_pkey; Type: INDEX ATTACH; Schema: relet; Owner: -
--

ALTER INDEX relet.finished_pkey ATTACH PARTITION relet.finished_20261124_pkey;


--
-- Name: finished_20261125_chain_idx; Type: INDEX ATTACH; Schema: relet; Owner: -
--

ALTER INDEX relet.finished_chain ATTACH PARTITION relet.finished_20261125_chain_idx;


--
-- Name: finished_20261125_pkey; Type: INDEX ATTACH; Schema: relet; Owner: -
--

ALTER INDEX relet.finished_pkey ATTACH PARTITION relet.finished_20261125_pkey;


--
-- Name: finished_20261126_chain_idx; Type: INDEX ATTACH; Schema: relet; Owner: -
--

ALTER INDEX relet.finished_chain ATTACH PARTITION relet.finished_20261126_chain_idx;


--
-- Name: finished_20261126_pkey; Type: INDEX ATTACH; Schema: relet; Owner: -
--

ALTER INDEX relet.finished_pkey ATTACH PARTITION relet.finished_20261126_pkey;


--
-- Name: FUNCTION drop_partition(day date, seconds double precision); Type: ACL; Schema: relet; Owner: -
--

REVOKE ALL ON FUNCTION relet.drop_partition(day date, seconds double precision) FROM PUBLIC;


--
-- Name: FUNCTION enqueue(task text, payload json, queue text, priority integer, run_at timestamp with time zone, delay double precision, target text, unique_key text, unique_for double precision, depends_on uuid[], max_attempts integer, id uuid, group_key text); Type: ACL; Schema: relet; Owner: -
--

REVOKE ALL ON FUNCTION relet.enqueue(task text, payload json, queue text, priority integer, run_at timestamp with time zone, delay double precision, target text, unique_key text, unique_for double precision, depends_on uuid[], max_attempts integer, id uuid, group_key text) FROM PUBLIC;


--
-- Name: FUNCTION make_partitions(first_day date, last_day date); Type: ACL; Schema: relet; Owner: -
--

REVOKE ALL ON FUNCTION relet.make_partitions(first_day date, last_day date) FROM PUBLIC;


--
-- PostgreSQL database dump complete
--


