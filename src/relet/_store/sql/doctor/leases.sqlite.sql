-- Leases that ran out so many seconds ago and more, counted up to a bound; and for how long the first.
select count(*), max({now} - expired.expires_at)
from (select expires_at from {schema}.jobs where expires_at <= {now} - :seconds
      order by expires_at limit :most) expired;
