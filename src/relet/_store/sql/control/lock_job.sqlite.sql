-- Read a job, before an operator's action is decided. No row: it is over, or does not exist.
select {locked}
from {schema}.jobs j
where j.id in (select value from json_each(:ids))
order by j.id;
