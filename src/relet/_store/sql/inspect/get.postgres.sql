-- Jobs by id, from both tables.
select {job}
from (select distinct json_array_elements_text(:ids::text::json)::uuid as given) g
cross join lateral (select * from {schema}.all_jobs a where a.id = g.given limit 1) j
