-- Those of these queues that are older than any of their rates asks for.
delete from {schema}.starts
where queue in (select value from json_each(:queues))
  and at <= {now} - (select max(r.per) from {schema}.rates r where r.queue = {schema}.starts.queue);
