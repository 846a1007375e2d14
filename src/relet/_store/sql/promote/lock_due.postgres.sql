-- Lock pending jobs that are due, the earliest first.
select date_part('epoch', run_at), seq, id::text, target, holds from {schema}.jobs
where wait = 'time' and run_at <= {now}
order by run_at, seq
limit :limit::integer
for update skip locked
