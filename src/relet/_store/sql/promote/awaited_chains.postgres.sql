-- Those of the chains that a job waits for.
select c.chain::text from (select json_array_elements_text(:chains::text::json)::uuid as chain offset 0) c
where exists (select from {schema}.dependencies d where d.depends_on = c.chain and d.state is null)
