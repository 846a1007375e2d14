-- Insert nudges, in the order of the batch.
insert into {schema}.nudges (kind, key, beyond)
select b.kind, b.key, b.beyond from json_to_recordset(:batch::text::json) as b(kind text, key text, beyond uuid)
