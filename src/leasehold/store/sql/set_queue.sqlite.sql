-- set_queue: what people have said of a queue.
insert into {schema}.queues as queues (queue, paused, max_running) values (:queue, coalesce(:paused, 0), :max_running)
on conflict (queue) do update
set paused = coalesce(:paused, queues.paused),
    max_running = case when :keep then queues.max_running else :max_running end;
