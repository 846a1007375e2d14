-- Leases that expired at least so many seconds ago, counted up to a limit; and how long ago the first expired.
select count(*)::integer, max(extract(epoch from {now} - expired.expires_at))::float8
from (select expires_at from {schema}.jobs where expires_at <= {now} - make_interval(secs => :seconds::float8)
      order by expires_at limit :limit::integer) expired
