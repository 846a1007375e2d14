-- Queued -> running. The claiming statement writes the lease. Reads each queue in (rank, seq) order, no further than
-- needed (json_each over a correlated list is SQLite's lateral join). Unless the limits are locked, stops before the
-- first queue that has a limit.
update {schema}.jobs
set {leased}
where rowid in (
    select c.value
    from json_each(:queues) s, json_each((
        select json_group_array(number) from (
            select rowid as number from {schema}.jobs
            where state = 'queued' and queue = s.value and suspect = :suspect
              and task in (select value from json_each(:tasks))
              and {startable}
            order by rank, seq
            limit :want
        )
    )) c
    where c.key < json_extract(:wants, '$[' || s.key || ']')
      and {room}
    limit :want
)
returning {claimed};
