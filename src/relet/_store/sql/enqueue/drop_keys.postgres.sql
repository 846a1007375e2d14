-- Give back the keys that were taken for jobs which will not be.
delete from {schema}.keys k using json_to_recordset(:batch::text::json) as b(key text, job uuid)
where k.key = b.key and k.job = b.job
