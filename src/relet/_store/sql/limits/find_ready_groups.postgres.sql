-- Record the groups of a queue that have queued jobs and room for one more, if the queue has limits by group. Goes from
-- one group to the next, with one index lookup for each.
insert into {schema}.ready_groups (queue, group_key)
with recursive groups(suspect, group_key) as (
    select s.suspect, (select min(j.group_key collate "POSIX") from {schema}.jobs j
                       where j.state = 'queued' and j.queue collate "POSIX" = :queue::text and j.suspect = s.suspect
                         and j.group_key collate "POSIX" > '')
    from (values (0::smallint), (1::smallint), (2::smallint)) s(suspect)
    where exists (select from {schema}.group_limits l where l.queue = :queue::text)
    union all
    select g.suspect, (select min(j.group_key collate "POSIX") from {schema}.jobs j
                       where j.state = 'queued' and j.queue collate "POSIX" = :queue::text and j.suspect = g.suspect
                         and j.group_key collate "POSIX" > g.group_key)
    from groups g where g.group_key is not null
)
select distinct :queue::text, g.group_key from groups g
where g.group_key is not null and coalesce(
    (select count(*) from {schema}.jobs j
     where j.state = 'running' and j.queue collate "POSIX" = :queue::text
          and j.group_key collate "POSIX" = g.group_key)
    < coalesce(
        (select l.max_running from {schema}.group_limits l
         where l.queue = :queue::text and l.group_key = g.group_key),
        (select l.max_running from {schema}.group_limits l where l.queue = :queue::text and l.group_key = '*')), true)
on conflict do nothing
