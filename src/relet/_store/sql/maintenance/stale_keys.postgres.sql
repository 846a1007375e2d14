-- Of so many keys without a window, in their order, those whose jobs are over or gone; and the last that was
-- looked at, with no job, if there may be more. A job that ends gives its key up, unless somebody has it locked just then.
with seen as materialized (
    select k.key, k.job from {schema}.keys k
    where k.until is null and k.key > :beyond::text
    order by k.key limit :most::integer
)
select s.key, s.job::text from seen s where (select true from {schema}.jobs j where j.id = s.job) is null
union all
select max(s.key), null from seen s having count(*) = :most::integer
