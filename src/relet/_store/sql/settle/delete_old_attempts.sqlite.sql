-- A job that polls releases one attempt after another: delete the record of an old one, if it was snoozed or released,
-- so that only those of the last claims are kept.
delete from {schema}.attempts
where outcome in ('snoozed', 'released') and (job, version) in (
    select json_extract(value, '$.job'), json_extract(value, '$.version') from json_each(:batch));
