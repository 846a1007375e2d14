-- A job that was to follow one that runs, under its key, will not come to run: the key is the other's again. Not if
-- that one had it for a window only: whoever follows it has come by the key by himself, when the window was over.
update {schema}.keys k
set job = h.id
from {schema}.jobs n
join {schema}.edges e on e.job = n.id and e.state is null
join {schema}.jobs h on h.unique_key = n.unique_key and not h.windowed and h.state <> 'failed'
    and (h.id = e.blocker or h.chain = e.blocker and h."position" > 0)
where n.id = any(array(select json_array_elements_text(:ids::text::json)::uuid))
  and k.key = n.unique_key and k.job = n.id and k.until is null
