-- Like `claim`, from one queue whose limits are locked: up to a number of jobs of each key, in turn, until there are
-- enough. The key '' stands for jobs without a key.
with asked as materialized (
    select s.key, s.want from unnest(:keys::text[], :wants::integer[]) as s(key, want)
    where not exists (select from {schema}.queues q where q.queue = :queue::text and q.paused)
),
nameless as materialized (  -- jobs enqueued while the queue was changed so that keys matter
    select id from (
        select id, key from {schema}.jobs
        where state = 'queued' and queue = :queue::text and suspect = :suspect::smallint
        order by rank, seq limit 2000) first
    where key is null
),
keyless as materialized (  -- read and locked only if jobs without a key are wanted
    select ctid as tid from {schema}.jobs
    -- (|| '' keeps the planner from the index by task.)
    where state = 'queued' and id = any(array(select id from nameless)) and task || '' = any(:tasks::text[])
    order by rank, seq
    limit (select want from asked where key = '')
    for update skip locked
),
candidates as materialized (
    select c.tid
    from asked a cross join lateral (
        select of_key.tid from (
            select ctid as tid from {schema}.jobs
            where state = 'queued' and queue = :queue::text and suspect = :suspect::smallint and key = a.key
              and task = any(:tasks::text[])
            order by rank, seq
            limit a.want
            for update skip locked
        ) of_key
        union all
        select k.tid from keyless k where a.key = ''
    ) c
    limit :most::integer
)
update {schema}.jobs j
set {leased}
where j.ctid = any(array(select tid from candidates))
returning {claimed}
