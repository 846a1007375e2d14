-- The queues of jobs, as a gateway compares them with the queues that a token is limited to. Reads each table by its
-- key: the view of both would be read from end to end.
select j.id, j.queue from json_each(:ids) g cross join {schema}.jobs j where j.id = g.value
union all
select f.id, f.queue from json_each(:ids) g cross join {schema}.finished f where f.id = g.value;
