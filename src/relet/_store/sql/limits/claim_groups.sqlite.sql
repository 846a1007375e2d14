-- Like `claim`, from one queue: up to a number of jobs of each group, in turn, until there are enough. The group ''
-- stands for jobs without a group.
update {schema}.jobs
set {leased}
where rowid in (
    select c.value
    from json_each(:groups) s, json_each((
        select json_group_array(number) from (
            select rowid as number from {schema}.jobs
            where state = 'queued' and queue = :queue and suspect = :suspect and group_key = s.value
              and task in (select value from json_each(:tasks))
              and {startable}
            order by rank, seq
            limit :limit
        )
    )) c
    where c.key < json_extract(:wants, '$[' || s.key || ']')
      and not exists (select 1 from {schema}.queues q where q.queue = :queue and q.paused)
    limit :limit
)
returning {claimed};
