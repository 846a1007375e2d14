-- Jobs without a key, in a queue where it matters, have the key '', by which they are found. What somebody has
-- locked is found without, if it stands among the first.
with keyless as materialized (
    select j.id from {schema}.jobs j join {schema}.queues q on q.queue = j.queue and q.by_key
    where j.queue = :queue::text and j.key is null
    order by j.id
    limit :most::integer
    for update of j skip locked
)
update {schema}.jobs j set key = '' from keyless k where j.id = k.id returning j.id::text
