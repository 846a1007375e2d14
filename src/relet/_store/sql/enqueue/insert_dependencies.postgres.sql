-- Insert the chains that each new job waits for.
insert into {schema}.edges (job, blocker, "position")
select b.job, b.blocker, b."position"
from json_to_recordset(:batch::text::json) as b(job uuid, blocker uuid, "position" integer)
on conflict do nothing
