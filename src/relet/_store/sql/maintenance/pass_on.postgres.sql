-- Notify up to a number of other sleeping workers of the same kind: this one has no room, or there are more jobs than
-- it can take. `withdraw`: it is not to be notified until it asks again.
with withdrawn as (
    update {schema}.sleepers set until = '-infinity' where key = :key::integer and :withdraw::boolean
)
select count(pg_notify({queued_channel} || '.' || to_hex(c.key), ''))
from (
    (select s.key from {schema}.sleepers s
     where s.kind = :kind::integer and s.key >= :start::integer and s.key <> :key::integer
       and s.until > {now} order by s.key limit :number::integer)
    union all
    (select s.key from {schema}.sleepers s
     where s.kind = :kind::integer and s.key < :start::integer and s.key <> :key::integer
       and s.until > {now} order by s.key limit :number::integer)
    limit :number::integer
) c
