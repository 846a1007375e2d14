-- Make the settings of a queue if it has none, and return the limits that code declared last.
insert into {schema}.queues (queue) values (:queue)
on conflict (queue) do update set queue = excluded.queue
returning declared;
