-- rewind_starts: starts that lie in the future, as the clock was put back, count from now on.
insert into {schema}.starts (queue, key, at, number)
select queue, key, {now}, sum(number) from {schema}.starts
where queue in (select value from json_each(:queues)) and at > {now} group by queue, key
on conflict (queue, key, at) do update set number = number + excluded.number;

delete from {schema}.starts where queue in (select value from json_each(:queues)) and at > {now};
