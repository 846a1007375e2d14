-- Read jobs; the transaction has the write lock.
select j.id, j.state from json_each(:batch) b cross join {schema}.jobs j where j.id = json_extract(b.value, '$.id');
