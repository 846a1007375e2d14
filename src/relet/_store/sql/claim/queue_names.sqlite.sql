-- Queues that have queued jobs. Goes from one name to the next, with one index lookup for each.
with recursive names(queue) as (
    select min(queue) from {schema}.jobs where state = 'queued'
    union all
    select (select min(j.queue) from {schema}.jobs j where j.state = 'queued' and j.queue > n.queue)
    from names n where n.queue is not null
)
select queue from names where queue is not null;
