-- Jobs whose lease has expired, unless the store itself was unreachable (the pulse decides): live workers renew first.
select {running}, j.queue
from {schema}.jobs j
where j.expires_at <= {now} and j.state = 'running'
  and exists (
      select 1 from {schema}.pulse p
      where (p.grace_until <= {now} or j.expires_at <= p.reap_before)
        and p.touched_at between {now} - :gap and {now} + 1)
order by j.expires_at
limit :limit;
