-- limits: those that apply; the transaction already keeps everybody else out.
select queue, max_running, fair, rated, last_key from {schema}.queues
where limited and (queue = '*' or queue in (select value from json_each(:queues)))
order by queue;
