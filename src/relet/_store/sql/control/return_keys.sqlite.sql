-- A job that took over the key of a running job will not run: the key goes back to the running job. Not if that job had
-- it only for a window: the follower took the key after the window had ended, so it is not given back.
update {schema}.keys as keys
set job = h.id
from {schema}.jobs n
join {schema}.dependencies d on d.job = n.id and d.state is null
join {schema}.jobs h on h.unique_key = n.unique_key and not h.windowed and h.state <> 'failed'
    and (h.id = d.depends_on or h.chain = d.depends_on and h.position > 0)
where n.id in (select value from json_each(:ids))
  and keys.key = n.unique_key and keys.job = n.id and keys.until is null;
