-- Those that nobody has heard of for long.
delete from {schema}.workers where seen_at < {now} - make_interval(secs => :seconds::float8) returning name
