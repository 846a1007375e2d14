-- retake_keys: keys that are over, or inherited, if they are still whose they were.
update {schema}.keys as keys
set job = json_extract(g.value, '$.job'), until = {now} + json_extract(g.value, '$.window')
from json_each(:batch) g
where keys.key = json_extract(g.value, '$.key') and keys.job = json_extract(g.value, '$.old')
returning key, job;
