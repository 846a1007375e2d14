-- nudge: put back what could not be decided yet.
insert into {schema}.nudges (kind, key)
select b.kind, b.key from json_to_recordset(:batch::text::json) as b(kind text, key text)
