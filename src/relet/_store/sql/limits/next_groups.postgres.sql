-- The keys that have queued jobs, in the order of their turns: those after the last one served, then from the first on
-- up to it. Goes from one key to the next, with one index lookup for each. Jobs without a key have the key '', which
-- comes first. Jobs that were enqueued while the queue was changed so that keys matter have no key at all; they are
-- searched for among the first jobs.
with recursive ahead(number, key) as (
    select 1, min(key) from {schema}.jobs
    where state = 'queued' and queue = :queue::text and suspect = :suspect::smallint
      and key > coalesce(:after::text, '')
    union all
    select a.number + 1,
           (select min(j.key) from {schema}.jobs j
            where j.state = 'queued' and j.queue = :queue::text and j.suspect = :suspect::smallint and j.key > a.key)
    from ahead a where a.key is not null and a.number < :most::integer
),
behind(number, key) as (
    select 1, min(key) from {schema}.jobs
    where state = 'queued' and queue = :queue::text and suspect = :suspect::smallint and key > ''
      and key <= :after::text
    union all
    select b.number + 1,
           (select min(j.key) from {schema}.jobs j
            where j.state = 'queued' and j.queue = :queue::text and j.suspect = :suspect::smallint and j.key > b.key
              and j.key <= :after::text)
    from behind b where b.key is not null and b.number < :most::integer
)
select * from (
    select 1 as place, number, key from ahead where key is not null
    union all
    select case when :after::text is null then 0 else 2 end, 0, '' where exists (
        select from (
            select key from {schema}.jobs
            where state = 'queued' and queue = :queue::text and suspect = :suspect::smallint
            order by rank, seq limit 2000) first
        where first.key is null)
        or exists (
            select from {schema}.jobs
            where state = 'queued' and queue = :queue::text and suspect = :suspect::smallint and key = '')
    union all
    select 3, number, key from behind where key is not null
) as keys
limit :most::integer
