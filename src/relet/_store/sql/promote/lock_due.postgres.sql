-- Lock pending jobs whose time has come, in the order in which it came.
select date_part('epoch', run_at), seq, id::text, target, holds from {schema}.jobs
where wait = 'time' and run_at <= {now}
order by run_at, seq
limit :most::integer
for update skip locked
