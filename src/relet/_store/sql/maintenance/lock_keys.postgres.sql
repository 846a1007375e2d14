-- Lock those of the keys that their jobs still have. Skips locked rows.
select k.key, k.job::text
from json_to_recordset(:batch::text::json) as b(key text, job uuid)
join {schema}.keys k on k.key = b.key and k.job = b.job and k.until is null
for update of k skip locked
