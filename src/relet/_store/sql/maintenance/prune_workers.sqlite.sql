-- Delete workers that have not reported for long.
delete from {schema}.workers where seen_at < {now} - :seconds returning name;
