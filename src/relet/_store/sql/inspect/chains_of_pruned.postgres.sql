-- Chains that go by these ids, though their first jobs are gone. (Id and chain, as find_chains.)
select chain::text, chain::text from {schema}.jobs
where chain = any(array(select json_array_elements_text(:ids::text::json)::uuid)) and "position" > 0
union
select chain::text, chain::text from {schema}.finished
where chain = any(array(select json_array_elements_text(:ids::text::json)::uuid)) and "position" > 0
