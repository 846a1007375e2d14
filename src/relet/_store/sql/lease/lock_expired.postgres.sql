-- Lock jobs whose lease has expired, unless the store itself was unreachable (the pulse decides): live workers renew
-- first.
select {running}, j.queue
from {schema}.jobs j
where j.expires_at <= {late} and j.state = 'running'
  and exists (select from {schema}.pulse p
              where (p.grace_until <= {late} or j.expires_at <= p.reap_before)
                and p.touched_at between {now} - make_interval(secs => :gap::float8) and {now} + interval '1 second')
order by j.expires_at
limit :limit::integer
for update skip locked
