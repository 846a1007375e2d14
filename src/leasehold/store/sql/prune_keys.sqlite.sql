-- prune_keys: windows that are over.
delete from keys where key in (select key from keys where until <= {now} limit :most) returning key;
