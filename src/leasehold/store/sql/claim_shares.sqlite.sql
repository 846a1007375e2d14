-- claim_shares: as `claim`, from one queue: so many of each key in turn, '' being those without one, until there are enough.
update {schema}.jobs
set state = 'running', attempt = attempt + 1, version = version + 1, worker = :worker, token = :token,
    started_at = {now}, alone = :alone, progress = null, renewed_at = null, expires_at = {now} + coalesce(lease, :lease)
where id in (
    select c.value
    from json_each(:keys) s, json_each((
        select json_group_array(id) from (
            select id from {schema}.jobs
            where state = 'queued' and queue = :queue and suspect = :suspect and key = json_extract(s.value, '$.key')
              and task in (select value from json_each(:tasks))
            order by rank, seq
            limit :most
        )
    )) c
    where c.key < json_extract(s.value, '$.want')
      and not exists (select 1 from {schema}.queues q where q.queue = :queue and q.paused)
    limit :most
)
returning id, version, task, queue, payload, priority, target, attempt, losses, max_attempts, policy, lease, chain,
          position, key, blockers, context, rank, seq, created_at, run_at, expires_at;
