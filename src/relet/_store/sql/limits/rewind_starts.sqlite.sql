-- The clock was set back: count starts that lie after this moment at it.
insert into {schema}.starts (queue, group_key, at, number)
select queue, group_key, :moment, sum(number) from {schema}.starts
where queue in (select value from json_each(:queues)) and at > :moment group by queue, group_key
on conflict (queue, group_key, at) do update set number = number + excluded.number;
