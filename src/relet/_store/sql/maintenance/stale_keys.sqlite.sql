-- Of the next keys without a window, in order, those whose jobs are over or deleted; and, if there may be more, the
-- last key that was read, without a job.
with seen as (
    select k.key, k.job from {schema}.keys k
    where k.until is null and k.key > :beyond
    order by k.key limit :limit
)
select s.key, s.job from seen s where not exists (select 1 from {schema}.jobs j where j.id = s.job)
union all
select last, null from (select max(s.key) as last, count(*) as number from seen s) where number = :limit;
