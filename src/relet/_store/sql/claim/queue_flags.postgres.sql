-- Whether suspects (1) or quarantined jobs (2) are queued in these queues, which queues have limits, and whether
-- workers wait for notifications.
with closed as materialized (select q.queue, q.paused, q.limited from {schema}.queues q where q.paused or q.limited),
suspects as materialized (
    select j.suspect
    from {schema}.jobs j
    where j.state = 'queued' and j.suspect > 0 and j.queue = any(:queues::text[]) and j.task = any(:tasks::text[])
      and not exists (select from closed q where q.paused and q.queue = j.queue)
    group by j.suspect
)
select coalesce((select sum(suspect) from suspects), 0)::integer,
       (select json_agg(queue)::text from closed where limited),
       exists (select from {schema}.arming where armed_until > {now})
