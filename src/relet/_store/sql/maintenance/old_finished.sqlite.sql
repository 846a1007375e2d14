-- A batch of jobs that ended long enough ago, and for whose result no job waits.
select f.id from {schema}.finished f
where f.finished_at <= {now} - :seconds
  and not exists (select 1 from {schema}.dependencies d where d.depends_on = f.chain and d.state is null)
order by f.finished_at
limit :limit;
