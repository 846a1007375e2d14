-- Leases that ran out so many seconds ago and more, counted up to a bound; and for how long the first.
select count(*)::integer, max(extract(epoch from {now} - expired.expires_at))::float8
from (select expires_at from {schema}.jobs where expires_at <= {now} - make_interval(secs => :seconds::float8)
      order by expires_at limit :most::integer) expired
