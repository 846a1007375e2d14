-- Who waits for the chains named, undecided, beyond whom was looked at. Of one chain after another, and no
-- more than are wanted: the loop over the chains stops there. (A range, which one index only has in this order.)
with given as materialized (
    select b.key, coalesce(b.beyond, '00000000-0000-0000-0000-000000000000') as beyond
    from json_to_recordset(:batch::text::json) as b(key uuid, beyond uuid)
)
select e.job::text, e.blocker::text
from given g cross join lateral (
    select e.job, e.blocker from {schema}.edges e
    where (e.blocker, e.job) > (g.key, g.beyond)
      and (e.blocker, e.job) <= (g.key, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid) and e.state is null
    order by e.blocker, e.job
    limit :most::integer
) e
limit :most::integer
