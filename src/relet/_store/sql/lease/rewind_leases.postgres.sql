-- The clock was set back: leases that were taken in the future start now, and last no longer than they were meant to.
with ahead as materialized (
    select id, {now} + (expires_at - coalesce(renewed_at, started_at)) as until from {schema}.jobs
    where expires_at between '-infinity' and 'infinity'
      and coalesce(renewed_at, started_at) > {now} + interval '1 second'
    order by id
    for no key update skip locked
)
update {schema}.jobs j
set expires_at = a.until, renewed_at = {now}
from ahead a
where j.id = a.id and j.id = any(array(select id from ahead))
