-- Have enqueuing processes notify sleeping workers for so many seconds.
update {schema}.arming
set armed_until = {now} + make_interval(secs => :seconds::float8)
where armed_until < {now} + make_interval(secs => :seconds::float8 / 2)
returning 1
