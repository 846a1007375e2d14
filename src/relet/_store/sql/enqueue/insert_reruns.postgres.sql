-- Record of which jobs these new ones are reruns.
insert into {schema}.reruns (job, rerun_of)
select b.job, b.rerun_of from json_to_recordset(:batch::text::json) as b(job uuid, rerun_of uuid)
on conflict do nothing
