-- What the jobs named wait for, undecided, beyond what was looked at. Of one job after another, and no more
-- than is wanted: the loop over the jobs stops there. (Undecided in other words than those of edges_open, which the planner
-- would take without statistics, and walk through for each job.)
with given as materialized (
    select b.key, coalesce(b.beyond, '00000000-0000-0000-0000-000000000000') as beyond
    from json_to_recordset(:batch::text::json) as b(key uuid, beyond uuid)
)
select e.job::text, e.blocker::text
from given g cross join lateral (
    select e.job, e.blocker from {schema}.edges e
    where e.job = g.key and e.blocker > g.beyond and coalesce(e.state, '') = ''
    order by e.blocker
    limit :most::integer
) e
limit :most::integer
