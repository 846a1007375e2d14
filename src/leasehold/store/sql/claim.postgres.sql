-- claim: queued -> running. The lease is written by the claiming statement; what is locked is passed over.
-- Each queue is walked in (rank, seq) order over the ranges that the cursor allows, no further than needed. Unless the
-- limits are locked, only queues that come before the first with a limit are served.
with asked as materialized (
    select s.place, s.queue, s.want, s.ranges
    from json_to_recordset(:queues::text::json) as s(place integer, queue text, want integer, ranges json)
),
open as materialized (
    select a.queue from asked a
    where not exists (select from {schema}.queues q where q.queue = a.queue and q.paused)
),
known as materialized (select json_array_elements_text(:tasks::text::json) as task),
first_limit as materialized (
    select min(a.place) as place from asked a
    where not :limited::boolean
      and exists (select from {schema}.queues q where q.limited and q.queue in (a.queue, '*'))
),
room as materialized (
    select a.queue, a.want, a.ranges
    from asked a
    where a.place < coalesce((select place from first_limit), a.place + 1)
      and not exists (select from {schema}.queues q where q.queue = a.queue and q.paused)
    order by a.place
),
candidates as materialized (
    select c.id
    from room r cross join lateral (
        select j.id
        from json_to_recordset(r.ranges) as g(low_rank integer, low_seq bigint, high_rank integer, high_seq bigint)
        cross join lateral (
            select id from {schema}.jobs
            where state = 'queued' and queue = r.queue and suspect = :suspect::smallint
              and (rank, seq) > (g.low_rank, g.low_seq) and (rank, seq) < (g.high_rank, g.high_seq)
              and task = any(array(select task from known))
            order by rank, seq
            limit r.want
            for update skip locked
        ) j
        limit r.want
    ) c
    limit :want::integer
),
claimed as (
    update {schema}.jobs j
    set state = 'running', attempt = j.attempt + 1, version = j.version + 1, worker = :worker::text,
        token = :token::text::uuid, started_at = {now}, alone = :alone::boolean, progress = null, renewed_at = null,
        expires_at = {now} + make_interval(secs => coalesce(j.lease, :lease::float8))
    where j.id = any(array(select id from candidates))
    returning j.id::text as id, j.version, j.task, j.queue, j.payload::text as payload, j.priority, j.target, j.attempt,
              j.losses, j.max_attempts, j.policy::text as policy, j.lease, j.chain::text as chain, j."position", j.key, j.blockers, j.context, j.rank, j.seq,
              extract(epoch from j.created_at)::float8 as created_at, extract(epoch from j.run_at)::float8 as run_at,
              extract(epoch from j.expires_at)::float8 as expires_at
)
select m.suspect, m.limited, c.*
from (
    -- Spelled out for each kind: joined to a list of kinds, the planner would read all that is queued.
    select exists (select from {schema}.jobs j where j.state = 'queued' and j.suspect = 1
                     and j.queue = any(array(select queue from open)) and j.task = any(array(select task from known))
                  )::integer
         + exists (select from {schema}.jobs j where j.state = 'queued' and j.suspect = 2
                     and j.queue = any(array(select queue from open)) and j.task = any(array(select task from known))
                  )::integer * 2 as suspect,
           (select json_agg(queue)::text from {schema}.queues where limited) as limited
) m left join claimed c on true
