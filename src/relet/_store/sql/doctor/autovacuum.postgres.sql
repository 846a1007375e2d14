-- The server's settings for autovacuum.
select current_setting('autovacuum') = 'on', current_setting('track_counts') = 'on',
       current_setting('autovacuum_vacuum_threshold')::float8, current_setting('autovacuum_vacuum_scale_factor')::float8
