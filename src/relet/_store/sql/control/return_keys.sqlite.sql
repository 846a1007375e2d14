-- A job that was to follow one that runs, under its key, will not come to run: the key is the other's again. Not if
-- that one had it for a window only: whoever follows it has come by the key by himself, when the window was over.
update {schema}.keys as keys
set job = h.id
from {schema}.jobs n
join {schema}.edges e on e.job = n.id and e.state is null
join {schema}.jobs h on h.unique_key = n.unique_key and not h.windowed and h.state <> 'failed'
    and (h.id = e.blocker or h.chain = e.blocker and h.position > 0)
where n.id in (select value from json_each(:ids))
  and keys.key = n.unique_key and keys.job = n.id and keys.until is null;
