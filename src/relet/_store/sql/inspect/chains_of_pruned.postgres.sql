-- Chains with these ids whose first jobs were pruned. (Id and chain, like `chains_of`.)
select chain::text, chain::text from {schema}.jobs
where chain = any(array(select json_array_elements_text(:ids::text::json)::uuid)) and "position" > 0
union
select chain::text, chain::text from {schema}.finished
where chain = any(array(select json_array_elements_text(:ids::text::json)::uuid)) and "position" > 0
