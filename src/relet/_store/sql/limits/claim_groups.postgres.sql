-- Like `claim`, from one queue whose limits are locked: up to a number of jobs of each group, in turn, until there are
-- enough. The group '' stands for jobs without a group.
with asked as materialized (
    select s.group_key, s.want from unnest(:groups::text[], :wants::integer[]) as s(group_key, want)
    where not exists (select from {schema}.queues q where q.queue = :queue::text and q.paused)
),
nameless as materialized (  -- jobs enqueued while the queue was changed so that groups matter
    select id from (
        select id, group_key from {schema}.jobs
        where state = 'queued' and queue = :queue::text and suspect = :suspect::smallint
        order by rank, seq limit 2000) first
    where group_key is null
),
ungrouped as materialized (  -- read and locked only if jobs without a group are wanted
    select ctid as tid from {schema}.jobs
    -- (|| '' keeps the planner from the index by task.)
    where state = 'queued' and id = any(array(select id from nameless)) and task || '' = any(:tasks::text[])
      and {startable}
    order by rank, seq
    limit (select want from asked where group_key = '')
    for update skip locked
),
candidates as materialized (
    select c.tid
    from asked a cross join lateral (
        select of_group.tid from (
            select ctid as tid from {schema}.jobs
            where state = 'queued' and queue collate "POSIX" = :queue::text and suspect = :suspect::smallint
              and group_key collate "POSIX" = a.group_key
              and task = any(:tasks::text[]) and {startable}
            order by rank, seq
            limit a.want
            for update skip locked
        ) of_group
        union all
        select k.tid from ungrouped k where a.group_key = ''
    ) c
    limit :limit::integer
)
update {schema}.jobs j
set {leased}
where j.ctid = any(array(select tid from candidates))
returning {claimed}
