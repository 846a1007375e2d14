-- Take the right to empty a worker, unless another worker has it, or half of the workers run jobs alone already. An
-- expiry further ahead than the right can last is ignored.
update {schema}.quarantine q
set worker = :worker::text, until = {now} + make_interval(secs => :seconds::float8)
where (q.worker is null or q.worker = :worker::text or q.until <= {now}
       or q.until > {now} + make_interval(secs => :seconds::float8))
  and (select count(distinct j.worker) from {schema}.jobs j
       where j.expires_at between '-infinity' and 'infinity' and j.alone and j.worker <> :worker::text)
    < greatest(floor((select count(*) from {schema}.workers w
                where not w.stopping and w.seen_at > {now} - make_interval(secs => :lost::float8)) / 2.0), 1)
returning q.worker
