-- Record the groups of a queue that have queued jobs and room for one more, if the queue has limits by group. Goes from
-- one group to the next, with one index lookup for each.
insert or ignore into {schema}.ready_groups (queue, group_key)
with recursive groups(suspect, group_key) as (
    select s.value, (select min(j.group_key) from {schema}.jobs j
                     where j.state = 'queued' and j.queue = :queue and j.suspect = s.value and j.group_key > '')
    from json_each('[0, 1, 2]') s
    where exists (select 1 from {schema}.group_limits l where l.queue = :queue)
    union all
    select g.suspect, (select min(j.group_key) from {schema}.jobs j
                       where j.state = 'queued' and j.queue = :queue and j.suspect = g.suspect
                         and j.group_key > g.group_key)
    from groups g where g.group_key is not null
)
select distinct :queue, g.group_key from groups g
where g.group_key is not null and coalesce(
    (select count(*) from {schema}.jobs j
     where j.state = 'running' and j.queue = :queue and j.group_key = g.group_key)
    < coalesce(
        (select l.max_running from {schema}.group_limits l where l.queue = :queue and l.group_key = g.group_key),
        (select l.max_running from {schema}.group_limits l where l.queue = :queue and l.group_key = '*')), 1);
