-- retake_keys: keys that are over, or inherited, if they are still whose they were.
with given as materialized (
    select b.* from json_to_recordset(:batch::text::json) as b(key text, old uuid, job uuid, "window" float8)
),
free as materialized (
    select k.key from {schema}.keys k
    where k.key = any(array(select key from given)) and k.job = any(array(select old from given))
    order by k.key
    for update
)
update {schema}.keys k
set job = g.job, until = {now} + make_interval(secs => g."window")
from free f join given g on g.key = f.key
where k.key = f.key and k.job = g.old
returning k.key, k.job::text
