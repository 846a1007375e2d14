-- A job that polls gives back one attempt after the other: of those only what belongs to its last claims is
-- kept. Takes the attempts of such jobs that have just left them.
delete from {schema}.attempts
where outcome in ('snoozed', 'released') and (job, version) in (
    select json_extract(value, '$.job'), json_extract(value, '$.version') from json_each(:batch));
