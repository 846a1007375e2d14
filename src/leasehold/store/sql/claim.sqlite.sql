-- claim: queued -> running. The lease is written by the claiming statement. The two marks come as a row of their own.
select (select sum(w.value) from json_each('[1, 2]') w
        where exists (select 1 from {schema}.jobs j, json_each(:queues) s
                      where j.state = 'queued' and j.suspect = w.value and j.queue = json_extract(s.value, '$.queue')
                        and j.task in (select value from json_each(:tasks))
                        and not exists (select 1 from {schema}.queues q where q.queue = j.queue and q.paused))),
       (select nullif(json_group_array(queue), '[]') from {schema}.queues where limited),
       null;

-- Each queue is walked in (rank, seq) order, no further than needed (json_each over a correlated list: SQLite's lateral).
-- Unless the limits are dealt with, only queues that come before the first with a limit are served.
update {schema}.jobs
set state = 'running', attempt = attempt + 1, version = version + 1, worker = :worker, token = :token,
    started_at = {now}, alone = :alone, progress = null, renewed_at = null, expires_at = {now} + coalesce(lease, :lease)
where id in (
    select c.value
    from json_each(:queues) s, json_each((
        select json_group_array(id) from (
            select id from {schema}.jobs
            where state = 'queued' and queue = json_extract(s.value, '$.queue') and suspect = :suspect
              and task in (select value from json_each(:tasks))
            order by rank, seq
            limit :want
        )
    )) c
    where c.key < json_extract(s.value, '$.want')
      and not exists (select 1 from {schema}.queues q where q.queue = json_extract(s.value, '$.queue') and q.paused)
      and not exists (
        select 1 from {schema}.queues q, json_each(:queues) a
        where not :limited and q.limited and q.queue in (json_extract(a.value, '$.queue'), '*')
          and json_extract(a.value, '$.place') <= json_extract(s.value, '$.place'))
    limit :want
)
returning 0, null, id, version, task, queue, payload, priority, target, attempt, losses, max_attempts, policy, lease, chain,
          position, key, blockers, context, rank, seq, created_at, run_at, expires_at;
