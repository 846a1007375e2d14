-- The keys that have queued jobs, in the order of their turns: those after the last one served, then from the first on
-- up to it. Goes from one key to the next, with one index lookup for each. Jobs without a key have the key '', which
-- comes first.
with recursive ahead(number, key) as (
    select 1, min(key) from {schema}.jobs
    where state = 'queued' and queue = :queue and suspect = :suspect and key > coalesce(:after, '')
    union all
    select a.number + 1,
           (select min(j.key) from {schema}.jobs j
            where j.state = 'queued' and j.queue = :queue and j.suspect = :suspect and j.key > a.key)
    from ahead a where a.key is not null and a.number < :most
),
behind(number, key) as (
    select 1, min(key) from {schema}.jobs
    where state = 'queued' and queue = :queue and suspect = :suspect and key > '' and key <= :after
    union all
    select b.number + 1,
           (select min(j.key) from {schema}.jobs j
            where j.state = 'queued' and j.queue = :queue and j.suspect = :suspect and j.key > b.key
              and j.key <= :after)
    from behind b where b.key is not null and b.number < :most
)
select * from (
    select 1 as place, number, key from ahead where key is not null
    union all
    select case when :after is null then 0 else 2 end, 0, ''
    where exists (
        select 1 from {schema}.jobs where state = 'queued' and queue = :queue and suspect = :suspect and key = '')
    union all
    select 3, number, key from behind where key is not null
)
limit :most;
