-- Renew leases. The answer has three cases: a lease that is renewed, one that is still valid but whose row is locked,
-- and one that is lost: no row. Then the running jobs of this worker that it does not know, from a claim whose reply
-- was lost.
with given as materialized (
    select b.id, b.token from json_to_recordset(:batch::text::json) as b(id uuid, token uuid)
),
mine as materialized (
    select j.id, j.token, j.request from {schema}.jobs j
    where j.id = any(array(select id from given)) and j.token = any(array(select token from given))
      and j.state = 'running'
      and (j.id, j.token) in (select id, token from given)
),
free as materialized (
    select j.id from {schema}.jobs j
    where j.id = any(array(select id from mine)) and j.token = any(array(select token from mine))
      and j.state = 'running'
    order by j.id
    for no key update skip locked  -- weak enough not to conflict with a handler that stores a step
),
renewed as (
    update {schema}.jobs j
    set expires_at = {now} + make_interval(secs => coalesce(j.lease, :lease::float8)), renewed_at = {now}
    where j.id = any(array(select id from free))
    returning j.id, j.request
)
select m.id::text, m.token::text, true, r.id is not null, coalesce(r.request, m.request)
from mine m left join renewed r on r.id = m.id
union all
select j.id::text, j.token::text, false, false, j.request from {schema}.jobs j
where j.expires_at between '-infinity' and 'infinity' and j.worker = :worker::text
  and (j.id, j.token) not in (select id, token from given)
