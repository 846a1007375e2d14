-- Delete keys whose windows have ended.
delete from {schema}.keys where key in (select key from {schema}.keys where until <= {now} limit :limit) returning key;
