-- prune_failed: a batch of jobs that failed long ago and that nobody resumed. What they held is freed.
with old as materialized (
    select id from {schema}.jobs
    where state = 'failed' and stopped_at < {now} - make_interval(secs => :seconds::float8)
    order by stopped_at
    limit :most::integer
    for update skip locked
),
gone as (
    delete from {schema}.jobs j using old o
    where j.id = o.id
    returning j.id, j.target, j.holds, j.watched, j.chain
),
freed as (
    insert into {schema}.nudges (kind, key)
    select 'target', target from gone where holds
    union all
    select 'chain', chain::text from gone where watched
)
select id::text from gone
