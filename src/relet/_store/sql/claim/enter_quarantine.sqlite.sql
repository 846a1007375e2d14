-- Take the right to empty a worker, unless another worker has it, or half of the workers run jobs alone already. An
-- expiry further ahead than the right can last is ignored.
update {schema}.quarantine
set worker = :worker, until = {now} + :seconds
where (worker is null or worker = :worker or until <= {now} or until > {now} + :seconds)
  and (select count(distinct j.worker) from {schema}.jobs j
       where j.expires_at is not null and j.alone and j.worker <> :worker)
    < max((select count(*) from {schema}.workers w where not w.stopping and w.seen_at > {now} - :lost) / 2, 1)
returning worker;
