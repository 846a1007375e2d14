-- Those that nobody has heard of for long.
delete from {schema}.workers where seen_at < {now} - :seconds returning name;
