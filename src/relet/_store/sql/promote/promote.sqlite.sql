-- Pending -> queued, in the order of the ids.
update {schema}.jobs as jobs
set state = 'queued', wait = null, waits = 0, holds = target is not null,
    seq = (select last from {schema}.sequence) + g.key + 1
from json_each(:ids) g
where jobs.id = g.value and state = 'pending';

update {schema}.sequence set last = last + json_array_length(:ids);

select value from json_each(:ids);
