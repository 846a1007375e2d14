-- The tasks that have queued jobs in these queues. Goes from one to the next, with one index lookup for each.
with recursive found(queue, task) as (
    select q.value, (select min(j.task) from {schema}.jobs j where j.state = 'queued' and j.queue = q.value)
    from json_each(:queues) q
    union all
    select g.queue, (
        select min(j.task) from {schema}.jobs j where j.state = 'queued' and j.queue = g.queue and j.task > g.task)
    from found g where g.task is not null
)
select queue, task from found where task is not null;
