-- Which tasks have jobs queued in these queues. From one to the next: one look at the index for each.
with recursive found(queue, task) as (
    select q.queue, (select min(j.task collate "C") from {schema}.jobs j where j.state = 'queued' and j.queue collate "C" = q.queue)
    from unnest(:queues::text[]) as q(queue)
    union all
    select g.queue, (select min(j.task collate "C") from {schema}.jobs j
                     where j.state = 'queued' and j.queue collate "C" = g.queue and j.task collate "C" > g.task)
    from found g where g.task is not null
)
select queue, task from found where task is not null
