-- Transfer the keys of running jobs to the jobs that follow them.
update {schema}.keys as keys set job = json_extract(g.value, '$.job')
from json_each(:batch) g
where keys.key = json_extract(g.value, '$.key') and keys.job = json_extract(g.value, '$.holder') and keys.until is null
returning key;
