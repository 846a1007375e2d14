-- A page of jobs with a tag that are not over, newest first by id. Goes through the index of the tags, and finds each
-- job by id.
select {job}
from (
    select t.job from {schema}.tags t
    where t.tag = :tag::text
      and t.job >= coalesce(:lowest::text, '00000000-0000-0000-0000-000000000000')::uuid
      and t.job < coalesce(:cursor::text, 'ffffffff-ffff-ffff-ffff-ffffffffffff')::uuid
) tagged
cross join lateral (select f.* from {schema}.live_jobs f where f.id = tagged.job offset 0) j
where {filter}
order by tagged.job desc
limit :limit::integer
