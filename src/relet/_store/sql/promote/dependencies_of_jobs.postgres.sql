-- The undecided dependencies of these jobs, after those read before. Reads one job after another, and stops at the
-- limit. (The condition for undecided differs from that of dependencies_open: without statistics, the planner would
-- take that index and read all of it for each job.)
with given as materialized (
    select b.key, coalesce(b.beyond, '00000000-0000-0000-0000-000000000000') as beyond
    from json_to_recordset(:batch::text::json) as b(key uuid, beyond uuid)
)
select d.job::text, d.depends_on::text
from given g cross join lateral (
    select d.job, d.depends_on from {schema}.dependencies d
    where d.job = g.key and d.depends_on > g.beyond and coalesce(d.state, '') = ''
    order by d.depends_on
    limit :limit::integer
) d
limit :limit::integer
