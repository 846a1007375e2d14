-- The jobs that wait for these chains, undecided, after those read before. Reads one chain after another, and stops at
-- the limit. (A range, which only one index has in this order.)
with given as materialized (
    select b.key, coalesce(b.beyond, '00000000-0000-0000-0000-000000000000') as beyond
    from json_to_recordset(:batch::text::json) as b(key uuid, beyond uuid)
)
select d.job::text, d.depends_on::text
from given g cross join lateral (
    select d.job, d.depends_on from {schema}.dependencies d
    where (d.depends_on, d.job) > (g.key, g.beyond)
      and (d.depends_on, d.job) <= (g.key, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid) and d.state is null
    order by d.depends_on, d.job
    limit :limit::integer
) d
limit :limit::integer
