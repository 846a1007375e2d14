-- Queued -> running. The claiming statement writes the lease and skips locked rows. Reads each queue in (rank, seq)
-- order, no further than needed, over the ranges that the cursor allows: those numbered `first` to `last` in the
-- arrays. (Rows are found by ctid: one that changes between the read and the update is skipped, and found by the next
-- claim.)
with {room},
candidates as materialized (
    select c.tid
    from room r cross join lateral (
        select j.tid
        from generate_series(r.first, r.last) as g(n) cross join lateral (
            select ctid as tid from {schema}.jobs
            where state = 'queued' and queue = r.queue and suspect = :suspect::smallint
              and (rank, seq) > ((:low_ranks::integer[])[g.n], (:low_seqs::bigint[])[g.n])
              and (rank, seq) < ((:high_ranks::integer[])[g.n], (:high_seqs::bigint[])[g.n])
              and task = any(:tasks::text[])
              and {startable}
            order by rank, seq
            limit r.want
            for update skip locked
        ) j
        limit r.want
    ) c
    limit :want::integer
)
update {schema}.jobs j
set {leased}
where j.ctid = any(array(select tid from candidates))
returning {claimed}
