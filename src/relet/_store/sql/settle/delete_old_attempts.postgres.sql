-- A job that polls gives back one attempt after the other: of those only what belongs to its last claims is
-- kept. Takes the attempts of such jobs that have just left them.
delete from {schema}.attempts a
using json_to_recordset(:batch::text::json) as b(job uuid, version integer)
where a.job = b.job and a.version = b.version and a.outcome in ('snoozed', 'released')
