-- A worker is about to sleep; until then producers notify.
update {schema}.arming
set armed_until = {now} + make_interval(secs => :seconds::float8)
where armed_until < {now} + make_interval(secs => :seconds::float8 / 2)
