-- The job of each chain that is not over. No row: the chain is over.
select {locked}
from {schema}.jobs j
where j.id in (select value from json_each(:chains))
   or j.position > 0 and j.chain in (select value from json_each(:chains))
order by j.id;
