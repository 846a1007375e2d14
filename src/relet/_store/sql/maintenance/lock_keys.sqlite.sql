-- Keys that jobs still have; the transaction already has the lock.
select k.key, k.job from json_each(:batch) b cross join {schema}.keys k
where k.key = json_extract(b.value, '$.key') and k.job = json_extract(b.value, '$.job') and k.until is null;
