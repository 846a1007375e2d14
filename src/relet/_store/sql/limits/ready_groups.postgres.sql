-- The groups that may have a job which can start, in the order of their turns, each with its running jobs: those after
-- the last one served, then from the first on up to it. Jobs without a group have the group ''.
select g.part, g.group_key,
       (select count(*) from {schema}.jobs j
        where j.state = 'running' and j.queue collate "POSIX" = :queue::text
          and j.group_key collate "POSIX" = g.group_key)::integer
from (
    select * from (
        select 1 as part, group_key from {schema}.ready_groups
        where queue = :queue::text and group_key > coalesce(:after::text, '')
        order by group_key limit :limit::integer) ahead
    union all
    select case when :after::text is null then 0 else 2 end, '' where exists (
        select from {schema}.jobs
        where state = 'queued' and queue collate "POSIX" = :queue::text and suspect = :suspect::smallint
          and group_key collate "POSIX" = '')
    union all
    select * from (
        select 3, group_key from {schema}.ready_groups
        where queue = :queue::text and group_key > '' and group_key <= :after::text
        order by group_key limit :limit::integer) behind
    limit :limit::integer
) g
