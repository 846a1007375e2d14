-- Of the next keys without a window, in order, those whose jobs are over or deleted; and, if there may be more, the
-- last key that was read, without a job. A job that ends gives up its key, unless another transaction has locked it.
with seen as materialized (
    select k.key, k.job from {schema}.keys k
    where k.until is null and k.key > :beyond::text
    order by k.key limit :limit::integer
)
select s.key, s.job::text from seen s where (select true from {schema}.jobs j where j.id = s.job) is null
union all
select max(s.key), null from seen s having count(*) = :limit::integer
