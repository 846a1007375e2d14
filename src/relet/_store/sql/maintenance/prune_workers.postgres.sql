-- Delete workers that have not reported for long.
delete from {schema}.workers where seen_at < {now} - make_interval(secs => :seconds::float8) returning name
