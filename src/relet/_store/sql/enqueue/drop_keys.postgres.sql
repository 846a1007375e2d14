-- Free the keys that were taken for jobs that will not be stored.
delete from {schema}.keys k using json_to_recordset(:batch::text::json) as b(key text, job uuid)
where k.key = b.key and k.job = b.job
