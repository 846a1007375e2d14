-- Lock jobs that have not started by their start_by, the earliest first.
select id::text, date_part('epoch', start_by) from {schema}.jobs
where start_by is not null and version = 0 and start_by <= {now} and state in ('pending', 'queued', 'paused')
order by start_by
limit :limit::integer
for update skip locked
