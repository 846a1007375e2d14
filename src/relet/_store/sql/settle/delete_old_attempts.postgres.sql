-- A job that polls releases one attempt after another: delete the record of an old one, if it was snoozed or released,
-- so that only those of the last claims are kept.
delete from {schema}.attempts a
using json_to_recordset(:batch::text::json) as b(job uuid, version integer)
where a.job = b.job and a.version = b.version and a.outcome in ('snoozed', 'released')
