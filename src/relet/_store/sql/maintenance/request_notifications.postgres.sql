-- A worker is about to sleep: ask producers to notify for so many seconds. Without a key no notification reaches it.
with armed as (
    update {schema}.arming
    set armed_until = {now} + make_interval(secs => :seconds::float8)
    where armed_until < {now} + make_interval(secs => :seconds::float8 / 2)
)
insert into {schema}.sleepers as s (key, kind, queues, tasks, until)
select :key::integer, :kind::integer, :queues::text[], :tasks::text[], {now} + make_interval(secs => :seconds::float8)
where :key::integer is not null
on conflict (key) do update set kind = excluded.kind, queues = excluded.queues, tasks = excluded.tasks,
                                until = excluded.until
