-- As `claim`, from one queue whose limits are locked: so many of each key in turn, '' being those without
-- one, until there are enough.
with asked as materialized (
    select s.key, s.want from unnest(:keys::text[], :wants::integer[]) as s(key, want)
    where not exists (select from {schema}.queues q where q.queue = :queue::text and q.paused)
),
nameless as materialized (  -- those that became jobs of this queue while it was told that keys matter
    select id from (
        select id, key from {schema}.jobs where state = 'queued' and queue = :queue::text and suspect = :suspect::smallint
        order by rank, seq limit 2000) first
    where key is null
),
keyless as materialized (  -- read, and locked, only if those without a key are asked for
    select ctid as tid from {schema}.jobs
    -- (|| '': not by the index of tasks)
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
