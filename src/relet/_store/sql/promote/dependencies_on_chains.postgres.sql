-- The jobs that wait for these chains, undecided, after those read before. Reads one chain after another, and stops at
-- the limit. (A range, which only one index has in this order.)
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
