-- Groups of a queue whose limits are locked are no longer ready: those that are full, and those of `spent` that have no
-- queued job. A job that is queued, or an attempt that ends, after this statement began has left a nudge.
delete from {schema}.ready_groups r
where r.queue = :queue::text
  and (r.group_key = any(array(select json_array_elements_text(:full::text::json)))
       or r.group_key = any(array(select json_array_elements_text(:spent::text::json))) and not exists (
           select from {schema}.jobs j
           where j.state = 'queued' and j.queue collate "POSIX" = r.queue and j.group_key collate "POSIX" = r.group_key
             and j.suspect in (0, 1, 2)))
