-- Those of the ticks that are stored already.
select b.name, b.at from json_to_recordset(:batch::text::json) as b(name text, at float8)
where exists (select from {schema}.ticks t where t.schedule = b.name and t.tick = to_timestamp(b.at))
