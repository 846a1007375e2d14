-- The groups that have queued jobs, in the order of their turns: those after the last one served, then from the first
-- on up to it. Goes from one group to the next, with one index lookup for each. Jobs without a group have the group '',
-- which comes first. Jobs that were enqueued while the queue was changed so that groups matter have no group at all;
-- they are searched for among the first jobs.
with recursive ahead(number, group_key) as (
    select 1, min(group_key collate "POSIX") from {schema}.jobs
    where state = 'queued' and queue collate "POSIX" = :queue::text and suspect = :suspect::smallint
      and group_key collate "POSIX" > coalesce(:after::text, '')
    union all
    select a.number + 1,
           (select min(j.group_key collate "POSIX") from {schema}.jobs j
            where j.state = 'queued' and j.queue collate "POSIX" = :queue::text and j.suspect = :suspect::smallint
              and j.group_key collate "POSIX" > a.group_key)
    from ahead a where a.group_key is not null and a.number < :limit::integer
),
behind(number, group_key) as (
    select 1, min(group_key collate "POSIX") from {schema}.jobs
    where state = 'queued' and queue collate "POSIX" = :queue::text and suspect = :suspect::smallint
      and group_key collate "POSIX" > '' and group_key collate "POSIX" <= :after::text
    union all
    select b.number + 1,
           (select min(j.group_key collate "POSIX") from {schema}.jobs j
            where j.state = 'queued' and j.queue collate "POSIX" = :queue::text and j.suspect = :suspect::smallint
              and j.group_key collate "POSIX" > b.group_key
              and j.group_key collate "POSIX" <= :after::text)
    from behind b where b.group_key is not null and b.number < :limit::integer
)
select * from (
    select 1 as part, number, group_key from ahead where group_key is not null
    union all
    select case when :after::text is null then 0 else 2 end, 0, '' where exists (
        select from (
            select group_key from {schema}.jobs
            where state = 'queued' and queue = :queue::text and suspect = :suspect::smallint
            order by rank, seq limit 2000) first
        where first.group_key is null)
        or exists (
            select from {schema}.jobs
            where state = 'queued' and queue collate "POSIX" = :queue::text and suspect = :suspect::smallint
              and group_key collate "POSIX" = '')
    union all
    select 3, number, group_key from behind where group_key is not null
) as groups
limit :limit::integer
