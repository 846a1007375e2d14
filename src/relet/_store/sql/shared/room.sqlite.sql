not exists (select 1 from {schema}.queues q where q.queue = s.value and q.paused)
  and not exists (
    select 1 from {schema}.queues q, json_each(:queues) a
    where not :limited and q.limited and q.queue in (a.value, '*') and a.key <= s.key)
