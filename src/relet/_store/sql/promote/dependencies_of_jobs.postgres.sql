-- The undecided dependencies of these jobs, after those read before. Reads one job after another, and stops at the
-- limit. (The condition for undecided differs from that of edges_open: without statistics, the planner would take that
-- index and read all of it for each job.)
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
