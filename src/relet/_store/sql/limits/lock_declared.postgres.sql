-- Lock the settings of a queue, which are made if it has none, and return the limits that code declared last.
insert into {schema}.queues (queue) values (:queue::text)
on conflict (queue) do update set queue = excluded.queue
returning declared::text
