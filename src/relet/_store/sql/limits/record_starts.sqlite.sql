-- Record starts for the rates of these queues. If rates are high, moments are rounded up, so that few rows hold many
-- starts; no start counts for less time than it must.
insert into {schema}.starts (queue, group_key, at, number)
select g.queue, g.group_key, g.at, g.number from (
    select b.queue, b.group_key, b.number,
           coalesce(
               (cast({now} / b.grain as integer) + ({now} / b.grain > cast({now} / b.grain as integer))) * b.grain,
               {now}) as at
    from (
        select json_extract(value, '$.queue') as queue, json_extract(value, '$.group_key') as group_key,
               json_extract(value, '$.number') as number,
               (select case when max(rate) > 1000 then min(per) / 1000 end
                from {schema}.rates r where r.queue = json_extract(value, '$.queue')) as grain
        from json_each(:batch)
    ) b
) g
where true
on conflict (queue, group_key, at) do update set number = number + excluded.number;
