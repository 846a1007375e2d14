-- Lock the jobs that this owner is about to settle, guarded by the lease. Returns the columns that the decision needs.
with given as materialized (
    select b.id, b.token from json_to_recordset(:batch::text::json) as b(id uuid, token uuid)
),
mine as materialized (
    select j.id, j.token, j.attempt, j.losses, j.alone, j.request, j.target, j.max_attempts, j.policy, j.chain
    from {schema}.jobs j
    where j.id = any(array(select id from given)) and j.token = any(array(select token from given))
      and j.state = 'running'
    order by j.id
    for update
)
select {running}, j.token::text, j.chain::text
from mine j join given g on g.id = j.id and g.token = j.token
