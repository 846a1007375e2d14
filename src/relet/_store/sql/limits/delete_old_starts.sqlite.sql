-- Delete starts that are older than any rate of these queues counts.
delete from {schema}.starts
where queue in (select value from json_each(:queues))
  and at <= {now} - (select max(r.per) from {schema}.rates r where r.queue = {schema}.starts.queue);
