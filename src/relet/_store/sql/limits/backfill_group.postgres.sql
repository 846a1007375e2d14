-- Give the group '' to jobs without a group, in a queue where groups matter: claims find them by it. Skips locked rows;
-- claims find those among the first jobs of the queue.
with ungrouped as materialized (
    select j.id from {schema}.jobs j join {schema}.queues q on q.queue = j.queue and q.by_group
    where j.queue = :queue::text and j.group_key is null
    order by j.id
    limit :limit::integer
    for update of j skip locked
)
update {schema}.jobs j set group_key = '' from ungrouped k where j.id = k.id returning j.id::text
