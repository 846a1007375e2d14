-- A batch of jobs that ended long enough ago, and for whose result no job waits. Old ids first; whole partitions are
-- dropped elsewhere.
select f.id::text from {schema}.finished f
where id < {schema}.first_id({now} - make_interval(secs => :seconds::float8))
  and finished_at <= {now} - make_interval(secs => :seconds::float8)
  and not exists (select from {schema}.dependencies d where d.depends_on = f.chain and d.state is null)
order by f.id
limit :limit::integer
for update skip locked
