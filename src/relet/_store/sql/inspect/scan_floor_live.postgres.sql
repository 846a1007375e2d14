-- The last of the newest `scan` jobs that are not over; no row if there are fewer.
select r.id::text
from {schema}.reached_live(
    coalesce(:lowest::text, '00000000-0000-0000-0000-000000000000')::uuid,
    coalesce(:cursor::text, 'ffffffff-ffff-ffff-ffff-ffffffffffff')::uuid,
    :scan::integer) as r(id)
where r.id is not null
