-- The state of the last job of each chain. No row: the chain is deleted.
select j.chain::text, j.state::text from {schema}.jobs j
where j.id = any(array(select json_array_elements_text(:chains::text::json)::uuid))
union all
select j.chain::text, j.state::text from {schema}.jobs j
where j.chain = any(array(select json_array_elements_text(:chains::text::json)::uuid)) and j."position" > 0
union all
select f.chain::text, f.state::text from {schema}.finished f
where f.id = any(array(select json_array_elements_text(:chains::text::json)::uuid)) and not f.continued
union all
select f.chain::text, f.state::text from {schema}.finished f
where f.chain = any(array(select json_array_elements_text(:chains::text::json)::uuid)) and f."position" > 0
  and not f.continued
