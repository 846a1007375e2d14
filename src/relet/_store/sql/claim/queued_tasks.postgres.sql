-- The tasks that have queued jobs in these queues. Goes from one to the next, with one index lookup for each.
with recursive found(queue, task) as (
    select q.queue, (
        select min(j.task collate "C") from {schema}.jobs j where j.state = 'queued' and j.queue collate "C" = q.queue)
    from unnest(:queues::text[]) as q(queue)
    union all
    select g.queue, (select min(j.task collate "C") from {schema}.jobs j
                     where j.state = 'queued' and j.queue collate "C" = g.queue and j.task collate "C" > g.task)
    from found g where g.task is not null
)
select queue, task from found where task is not null
