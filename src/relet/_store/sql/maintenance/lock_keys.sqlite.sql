-- Those of the keys that their jobs still have. The transaction has the write lock.
select k.key, k.job from json_each(:batch) b cross join {schema}.keys k
where k.key = json_extract(b.value, '$.key') and k.job = json_extract(b.value, '$.job') and k.until is null;
