-- The groups that have queued jobs, in the order of their turns: those after the last one served, then from the first
-- on up to it. Goes from one group to the next, with one index lookup for each. Jobs without a group have the group '',
-- which comes first.
with recursive ahead(number, group_key) as (
    select 1, min(group_key) from {schema}.jobs
    where state = 'queued' and queue = :queue and suspect = :suspect and group_key > coalesce(:after, '')
    union all
    select a.number + 1,
           (select min(j.group_key) from {schema}.jobs j
            where j.state = 'queued' and j.queue = :queue and j.suspect = :suspect and j.group_key > a.group_key)
    from ahead a where a.group_key is not null and a.number < :limit
),
behind(number, group_key) as (
    select 1, min(group_key) from {schema}.jobs
    where state = 'queued' and queue = :queue and suspect = :suspect and group_key > '' and group_key <= :after
    union all
    select b.number + 1,
           (select min(j.group_key) from {schema}.jobs j
            where j.state = 'queued' and j.queue = :queue and j.suspect = :suspect and j.group_key > b.group_key
              and j.group_key <= :after)
    from behind b where b.group_key is not null and b.number < :limit
)
select * from (
    select 1 as part, number, group_key from ahead where group_key is not null
    union all
    select case when :after is null then 0 else 2 end, 0, ''
    where exists (
        select 1 from {schema}.jobs where state = 'queued' and queue = :queue and suspect = :suspect and group_key = '')
    union all
    select 3, number, group_key from behind where group_key is not null
)
limit :limit;
