-- Insert the chains that each new job waits for.
insert into {schema}.dependencies (job, depends_on, "position")
select b.job, b.depends_on, b."position"
from json_to_recordset(:batch::text::json) as b(job uuid, depends_on uuid, "position" integer)
on conflict do nothing
