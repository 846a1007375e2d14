-- Like `claim`, for queues with jobs of tasks that the worker does not know, perhaps a million of them: each task is
-- read separately, so that no other jobs are read.
update {schema}.jobs
set {leased}
where rowid in (
    select c.value
    from json_each(:queues) s, json_each((
        select json_group_array(number) from (
            select m.value as number
            from json_each(:tasks) t, json_each((
                select json_group_array(number) from (
                    select rowid as number from {schema}.jobs
                    where state = 'queued' and queue = s.value and task = t.value and suspect = :suspect
                      and {startable}
                    order by rank, seq
                    limit :want
                )
            )) m cross join {schema}.jobs j on j.rowid = m.value
            order by j.rank, j.seq
            limit :want
        )
    )) c
    where c.key < json_extract(:wants, '$[' || s.key || ']')
      and {room}
    limit :want
)
returning {claimed};
