-- Record that these dependencies are decided. Copies result and task, as the blocker may be pruned.
update {schema}.edges as edges
set state = json_extract(g.value, '$.state'),
    result = (select f.result from {schema}.finished f
              where f.state = 'succeeded' and not f.continued
                and (f.id = edges.blocker or f.position > 0 and f.chain = edges.blocker)),
    task = coalesce((select j.task from {schema}.jobs j where j.id = edges.blocker),
                    (select f.task from {schema}.finished f where f.id = edges.blocker))
from json_each(:batch) g
where edges.job = json_extract(g.value, '$.job') and edges.blocker = json_extract(g.value, '$.blocker');
