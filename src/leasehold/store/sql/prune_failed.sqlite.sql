-- prune_failed: a batch of jobs that failed long ago and that nobody resumed. What they held is freed.
insert into {schema}.nudges (kind, key)
select 'target', target from (
    select target, holds from {schema}.jobs where state = 'failed' and stopped_at < {now} - :seconds order by stopped_at limit :most) where holds
union all
select 'chain', chain from (
    select chain, watched from {schema}.jobs where state = 'failed' and stopped_at < {now} - :seconds order by stopped_at limit :most) where watched;

delete from {schema}.jobs
where id in (select id from {schema}.jobs where state = 'failed' and stopped_at < {now} - :seconds order by stopped_at limit :most)
returning id;
