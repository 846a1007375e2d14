-- A batch of jobs that ended long enough ago to lose their payloads, in the order of their ids, and whether each still
-- has one. Skips jobs for whose result another waits.
select f.id::text, f.payload::text <> 'null' from {schema}.finished f
where f.id > coalesce(:beyond::text, '00000000-0000-0000-0000-000000000000')::uuid
  and f.id < {schema}.first_id({now} - make_interval(secs => :seconds::float8))
  and f.finished_at <= {now} - make_interval(secs => :seconds::float8)
  and not exists (select from {schema}.dependencies d where d.depends_on = f.chain and d.state is null)
order by f.id
limit :limit::integer
