-- Give the key '' to jobs without a key, in a queue where keys matter: claims find them by it. Skips locked rows;
-- claims find those among the first jobs of the queue.
with keyless as materialized (
    select j.id from {schema}.jobs j join {schema}.queues q on q.queue = j.queue and q.by_key
    where j.queue = :queue::text and j.key is null
    order by j.id
    limit :most::integer
    for update of j skip locked
)
update {schema}.jobs j set key = '' from keyless k where j.id = k.id returning j.id::text
