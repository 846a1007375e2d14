-- Set how many jobs of a group may run at once.
insert into {schema}.group_limits (queue, group_key, max_running) values (:queue::text, :group::text, :number::integer)
on conflict (queue, group_key) do update set max_running = excluded.max_running
