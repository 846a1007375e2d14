-- roll_up: what is old enough is counted in longer steps; what is older than that is forgotten.
with gone as (
    delete from {schema}.stats s
    where s.step = :step::integer
      and s.at < to_timestamp(floor(extract(epoch from {now} - make_interval(secs => :seconds::float8)) / 3600) * 3600)
    returning s.*
),
sums as (
    select to_timestamp(floor(extract(epoch from at) / abs(:longer::integer)) * abs(:longer::integer)) as at,
           queue, name, bucket, peak, case when peak then max(number) else sum(number) end as number
    from gone
    where :longer::integer is not null
    group by 1, queue, name, bucket, peak
)
insert into {schema}.stats as s (step, at, queue, name, bucket, peak, number)
select :longer::integer, at, queue, name, bucket, peak, number from sums order by at, queue, name, bucket
on conflict (step, at, queue, name, bucket) do update
set number = case when s.peak then greatest(s.number, excluded.number) else s.number + excluded.number end
