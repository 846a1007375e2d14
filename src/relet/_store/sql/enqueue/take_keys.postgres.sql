-- Take keys, in their order. Returns the job that has each key now: the new job, unless another one holds it. The order
-- is by code points, whatever the collation of the database: a caller that sends several statements sorts the same way.
select g.key, {schema}.take_key(g.key, g.job, g.heir_of, g."window", {given})::text
from (
    select b.* from json_to_recordset(:batch::text::json) as b(key text, job uuid, heir_of uuid, "window" float8)
    order by b.key collate "C"
    offset 0
) g
