asked as materialized (
    select s.queue, s.want, s.first, s.last, s.place
    from unnest(:queues::text[], :wants::integer[], :firsts::integer[], :lasts::integer[])
         with ordinality as s(queue, want, first, last, place)
),
closed as materialized (select q.queue, q.paused, q.limited from {schema}.queues q where q.paused or q.limited),
room as materialized (
    select r.queue, r.want, r.first, r.last
    from asked r
    where not exists (select from closed q where q.paused and q.queue = r.queue)
      and (:limited::boolean or r.place < coalesce(
        (select min(a.place) from closed q, asked a where q.limited and q.queue in (a.queue, '*')), r.place + 1))
    order by r.place
)
