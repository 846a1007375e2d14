-- Add up old counts in longer steps, up to one of them. Locks them, so that one of several workers adds them up; a
-- later statement deletes them. No worker adds to a time that is so long ago.
with old as materialized (
    select s.at, s.queue, s.name, s.bucket, s.peak, s.number from {schema}.stats s
    where s.step = :step::integer
      and (s.at, s.queue, s.name, s.bucket)
          <= (to_timestamp(:at::float8), :queue::text, :name::text, :bucket::smallint)
    order by s.at, s.queue, s.name, s.bucket
    for update
),
sums as (
    select to_timestamp(floor(extract(epoch from at) / abs(:longer::integer)) * abs(:longer::integer)) as at,
           queue, name, bucket, peak, case when peak then max(number) else sum(number) end as number
    from old
    group by 1, queue, name, bucket, peak
)
insert into {schema}.stats as s (step, at, queue, name, bucket, peak, number)
select :longer::integer, at, queue, name, bucket, peak, number from sums order by at, queue, name, bucket
on conflict (step, at, queue, name, bucket) do update
set number = case when s.peak then greatest(s.number, excluded.number) else s.number + excluded.number end
