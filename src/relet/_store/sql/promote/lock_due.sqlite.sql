-- Pending jobs that are due, the earliest first.
select run_at, seq, id, target, holds from {schema}.jobs
where wait = 'time' and run_at <= {now}
order by run_at, seq
limit :limit;
