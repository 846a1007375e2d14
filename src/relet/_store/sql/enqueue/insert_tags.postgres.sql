-- Insert the tags of new jobs.
insert into {schema}.tags (tag, job)
select b.tag, b.job from json_to_recordset(:batch::text::json) as b(tag text, job uuid)
on conflict do nothing
