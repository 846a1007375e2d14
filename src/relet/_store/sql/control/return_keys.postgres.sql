-- A job that took over the key of a running job will not run: the key goes back to the running job. Not if that job had
-- it only for a window: the follower took the key after the window had ended, so it is not given back.
update {schema}.keys k
set job = h.id
from {schema}.jobs n
join {schema}.dependencies d on d.job = n.id and d.state is null
join {schema}.jobs h on h.unique_key = n.unique_key and not h.windowed and h.state <> 'failed'
    and (h.id = d.depends_on or h.chain = d.depends_on and h."position" > 0)
where n.id = any(array(select json_array_elements_text(:ids::text::json)::uuid))
  and k.key = n.unique_key and k.job = n.id and k.until is null
