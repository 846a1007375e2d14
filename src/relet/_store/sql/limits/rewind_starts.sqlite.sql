-- The clock was set back: count starts that lie after this moment at it.
insert into {schema}.starts (queue, key, at, number)
select queue, key, :moment, sum(number) from {schema}.starts
where queue in (select value from json_each(:queues)) and at > :moment group by queue, key
on conflict (queue, key, at) do update set number = number + excluded.number;
