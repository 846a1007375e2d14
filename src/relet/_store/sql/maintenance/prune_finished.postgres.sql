-- Delete jobs that are over, locked by an earlier statement. Skips one for which another job has begun to wait before
-- that.
delete from {schema}.finished f
where f.id = any(array(select json_array_elements_text(:ids::text::json)::uuid))
  and not exists (select from {schema}.dependencies d where d.depends_on = f.chain and d.state is null)
returning f.id::text
