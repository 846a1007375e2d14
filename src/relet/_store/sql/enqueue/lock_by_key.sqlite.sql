-- Jobs; the transaction keeps everybody else out.
select j.id, j.state from json_each(:batch) b cross join {schema}.jobs j where j.id = json_extract(b.value, '$.id');
