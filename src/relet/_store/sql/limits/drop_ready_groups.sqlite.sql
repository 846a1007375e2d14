-- Groups of a queue are no longer ready: those that are full, and those of `spent` that have no queued job.
delete from {schema}.ready_groups as r
where r.queue = :queue
  and (r.group_key in (select value from json_each(:full))
       or r.group_key in (select value from json_each(:spent)) and not exists (
           select 1 from {schema}.jobs j
           where j.state = 'queued' and j.queue = r.queue and j.group_key = r.group_key and j.suspect in (0, 1, 2)));
