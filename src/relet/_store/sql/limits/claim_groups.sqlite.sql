-- Like `claim`, from one queue: up to a number of jobs of each key, in turn, until there are enough. The key '' stands
-- for jobs without a key.
update {schema}.jobs
set {leased}
where rowid in (
    select c.value
    from json_each(:keys) s, json_each((
        select json_group_array(number) from (
            select rowid as number from {schema}.jobs
            where state = 'queued' and queue = :queue and suspect = :suspect and key = s.value
              and task in (select value from json_each(:tasks))
            order by rank, seq
            limit :most
        )
    )) c
    where c.key < json_extract(:wants, '$[' || s.key || ']')
      and not exists (select 1 from {schema}.queues q where q.queue = :queue and q.paused)
    limit :most
)
returning {claimed};
