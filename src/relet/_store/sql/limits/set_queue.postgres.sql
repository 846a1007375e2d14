-- Change the settings of a queue.
insert into {schema}.queues (queue, paused, max_running, fair)
values (:queue::text, coalesce(:paused::boolean, false), :max_running::integer, coalesce(:fair::boolean, false))
on conflict (queue) do update
set paused = coalesce(:paused::boolean, queues.paused),
    max_running = case when :keep::boolean then queues.max_running else :max_running::integer end,
    fair = coalesce(:fair::boolean, queues.fair)
