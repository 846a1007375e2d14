-- Change the settings of a queue.
insert into {schema}.queues as queues (queue, paused, max_running, fair)
values (:queue, coalesce(:paused, 0), :max_running, coalesce(:fair, 0))
on conflict (queue) do update
set paused = coalesce(:paused, queues.paused),
    max_running = case when :keep then queues.max_running else :max_running end,
    fair = coalesce(:fair, queues.fair);
