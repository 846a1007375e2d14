-- Record that these dependencies are decided. Copies result and task, as the depends_on may be pruned.
update {schema}.dependencies as d
set state = json_extract(g.value, '$.state'),
    result = (select f.result from {schema}.finished f
              where f.state = 'succeeded' and not f.continued
                and (f.id = d.depends_on or f.position > 0 and f.chain = d.depends_on)),
    task = coalesce((select j.task from {schema}.jobs j where j.id = d.depends_on),
                    (select f.task from {schema}.finished f where f.id = d.depends_on))
from json_each(:batch) g
where d.job = json_extract(g.value, '$.job') and d.depends_on = json_extract(g.value, '$.depends_on');
