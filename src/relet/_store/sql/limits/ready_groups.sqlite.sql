-- The groups that may have a job which can start, in the order of their turns, each with its running jobs: those after
-- the last one served, then from the first on up to it. Jobs without a group have the group ''.
select g.part, g.group_key,
       (select count(*) from {schema}.jobs j
        where j.state = 'running' and j.queue = :queue and j.group_key = g.group_key)
from (
    select * from (
        select 1 as part, group_key from {schema}.ready_groups
        where queue = :queue and group_key > coalesce(:after, '')
        order by group_key limit :limit)
    union all
    select case when :after is null then 0 else 2 end, '' where exists (
        select 1 from {schema}.jobs
        where state = 'queued' and queue = :queue and suspect = :suspect and group_key = '')
    union all
    select * from (
        select 3, group_key from {schema}.ready_groups
        where queue = :queue and group_key > '' and group_key <= :after
        order by group_key limit :limit)
    limit :limit
) g;
