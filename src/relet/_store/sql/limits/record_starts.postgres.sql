-- Record starts for the rates of these queues, whose limits are locked. If rates are high, moments are rounded up, so
-- that few rows hold many starts; no start counts for less time than it must.
with given as materialized (
    select b.queue, b.group_key, b.number, {now} as moment,
           to_timestamp(ceil(extract(epoch from {now})::float8 / r.grain) * r.grain) as rounded
    from json_to_recordset(:batch::text::json) as b(queue text, group_key text, number integer)
    cross join lateral (
        select case when max(rate) > 1000 then min(per) / 1000 end as grain
        from {schema}.rates where rates.queue = b.queue
    ) r
)
insert into {schema}.starts (queue, group_key, at, number) select queue, group_key, coalesce(rounded, moment),
    number from given
on conflict (queue, group_key, at) do update set number = starts.number + excluded.number
