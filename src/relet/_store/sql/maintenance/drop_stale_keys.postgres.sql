-- Of keys that an earlier statement has locked, delete those whose jobs are not live.
delete from {schema}.keys k using json_to_recordset(:batch::text::json) as b(key text, job uuid)
where k.key = b.key and k.job = b.job and (select true from {schema}.jobs j where j.id = k.job) is null
returning k.key
