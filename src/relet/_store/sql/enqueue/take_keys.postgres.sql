-- For each key, in their order, who has it now: the job given, unless another has it. The order is that of
-- whoever sends more than one statement can carry: by code points, whatever the collation of the database.
select g.key, {schema}.take_key(g.key, g.job, g.heir_of, g."window", {given})::text
from (
    select b.* from json_to_recordset(:batch::text::json) as b(key text, job uuid, heir_of uuid, "window" float8)
    order by b.key collate "C"
    offset 0
) g
