-- A worker is about to sleep: ask producers to notify for so many seconds.
update {schema}.arming
set armed_until = {now} + make_interval(secs => :seconds::float8)
where armed_until < {now} + make_interval(secs => :seconds::float8 / 2)
