-- The limits that apply, and the running jobs, including those with expired leases. The transaction has the write lock.
select q.queue, q.max_running, q.fair, q.rated, q.last_group,
       case when q.max_running is not null then (
           select count(*) from {schema}.jobs j where j.expires_at is not null and q.queue in (j.queue, '*')) end
from {schema}.queues q
where q.limited and (q.queue = '*' or q.queue in (select value from json_each(:queues)))
order by q.queue;
