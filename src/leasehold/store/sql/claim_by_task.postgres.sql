-- claim_by_task: as `claim`, for queues that hold jobs of tasks which the worker does not know, perhaps a million of them: each
-- task is walked by itself, so that no others are passed over.
with asked as materialized (
    select s.queue, s.want, s.place
    from unnest(:queues::text[], :wants::integer[]) with ordinality as s(queue, want, place)
),
ranges as materialized (
    select g.place, g.low_rank, g.low_seq, g.high_rank, g.high_seq
    from unnest(:places::integer[], :low_ranks::integer[], :low_seqs::bigint[], :high_ranks::integer[], :high_seqs::bigint[])
         as g(place, low_rank, low_seq, high_rank, high_seq)
),
closed as materialized (select q.queue, q.paused, q.limited from {schema}.queues q where q.paused or q.limited),
room as materialized (  -- sorted: the planner would join the queues in another order
    select r.queue, r.want, r.place
    from asked r
    where not exists (select from closed q where q.paused and q.queue = r.queue)
      and (:limited::boolean or not exists (
        select from closed q, asked a where q.limited and q.queue in (a.queue, '*') and a.place <= r.place))
    order by r.place
),
candidates as materialized (
    select c.tid
    from room r cross join lateral (
        select j.tid
        from ranges g cross join unnest(:tasks::text[]) as known(task) cross join lateral (
            select ctid as tid, rank, seq from {schema}.jobs
            where state = 'queued' and queue collate "C" = r.queue and task collate "C" = known.task and suspect = :suspect::smallint
              and (rank, seq) > (g.low_rank, g.low_seq) and (rank, seq) < (g.high_rank, g.high_seq)
            order by rank, seq
            limit r.want
        ) j
        where g.place = r.place
        order by j.rank, j.seq
        limit r.want
    ) c
    limit :want::integer
),
free as materialized (
    select ctid as tid from {schema}.jobs
    where ctid = any(array(select tid from candidates)) and state = 'queued'
    for update skip locked
)
update {schema}.jobs j
set state = 'running', attempt = j.attempt + 1, version = j.version + 1, worker = :worker::text,
    token = :token::text::uuid, started_at = {now}, alone = :alone::boolean, progress = null, renewed_at = null,
    expires_at = {now} + make_interval(secs => coalesce(j.lease, :lease::float8))
where j.ctid = any(array(select tid from free))
returning {claimed}
