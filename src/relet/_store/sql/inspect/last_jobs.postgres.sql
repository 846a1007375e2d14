-- The last jobs of the chains.
select {job} from {schema}.all_jobs
where (id = any(array(select json_array_elements_text(:chains::text::json)::uuid))
       or (chain = any(array(select json_array_elements_text(:chains::text::json)::uuid)) and "position" > 0))
  and not continued
