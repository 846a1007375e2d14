-- Like `claim`, for queues with jobs of tasks that the worker does not know, perhaps a million of them: each task is
-- read separately, so that no other jobs are read.
with {room},
candidates as materialized (
    select c.tid
    from room r cross join lateral (
        select j.tid
        from generate_series(r.first, r.last) as g(n) cross join unnest(:tasks::text[]) as known(task)
        cross join lateral (
            select ctid as tid, rank, seq from {schema}.jobs
            where state = 'queued' and queue collate "C" = r.queue and task collate "C" = known.task
              and suspect = :suspect::smallint and {startable}
              and (rank, seq) > ((:low_ranks::integer[])[g.n], (:low_seqs::bigint[])[g.n])
              and (rank, seq) < ((:high_ranks::integer[])[g.n], (:high_seqs::bigint[])[g.n])
            order by rank, seq
            limit r.want
        ) j
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
set {leased}
where j.ctid = any(array(select tid from free))
returning {claimed}
