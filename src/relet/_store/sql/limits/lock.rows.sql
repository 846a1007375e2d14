-- Lock the rows of the limits that apply, in order, then count the running jobs, including those with expired leases.
-- Two statements: the second sees what was committed while the first one waited.
select q.queue from {schema}.queues q
where q.limited and (q.queue = '*' or q.queue = any(:queues::text[]))
order by q.queue
for update;
with limits as materialized (
    select q.queue, q.max_running, q.fair, q.rated, q.last_group from {schema}.queues q
    where q.limited and (q.queue = '*' or q.queue = any(:queues::text[]))
),
running as materialized (
    select j.queue, count(*) as number from {schema}.jobs j
    where j.expires_at between '-infinity' and 'infinity'
      and exists (select 1 from limits l where l.max_running is not null)
    group by j.queue
)
select l.queue, l.max_running, l.fair, l.rated, l.last_group,
       (select coalesce(sum(r.number), 0)::bigint from running r where l.queue in (r.queue, '*'))
from limits l
order by l.queue
