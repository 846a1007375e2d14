-- Leases that expired at least so many seconds ago, counted up to a limit; and how long ago the first expired.
select count(*), max({now} - expired.expires_at)
from (select expires_at from {schema}.jobs where expires_at <= {now} - :seconds
      order by expires_at limit :limit) expired;
