-- Set how many dependencies these jobs still wait for. A pending job that has none left waits for its time.
update {schema}.jobs as jobs
set waits = json_extract(g.value, '$.waits'),
    wait = case when state = 'pending' then json_extract(g.value, '$.wait') end
from json_each(:batch) g
where jobs.id = json_extract(g.value, '$.id');
