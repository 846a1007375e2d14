-- limits: those that apply; the transaction already keeps everybody else out.
select queue, max_running from {schema}.queues
where max_running is not null and (queue = '*' or queue in (select value from json_each(:queues)))
order by queue;
