-- Those of the ticks that are stored already.
select json_extract(b.value, '$.name'), json_extract(b.value, '$.at') from json_each(:batch) b
where exists (
    select 1 from {schema}.ticks t
    where t.schedule = json_extract(b.value, '$.name') and t.tick = json_extract(b.value, '$.at'));
