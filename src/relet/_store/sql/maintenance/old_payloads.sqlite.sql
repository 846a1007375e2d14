-- A batch of jobs that ended long enough ago to lose their payloads, in the order of their ids, and whether each still
-- has one. Skips jobs for whose result another waits.
select f.id, f.payload <> 'null' from {schema}.finished f
where f.id > coalesce(:beyond, '') and f.finished_at <= {now} - :seconds
  and not exists (select 1 from {schema}.dependencies d where d.depends_on = f.chain and d.state is null)
order by f.id
limit :limit;
