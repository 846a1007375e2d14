-- Whether suspects (1) or quarantined jobs (2) are queued in these queues, which queues have limits, and whether
-- workers wait for notifications: here all see each change of the file.
select (select coalesce(sum(suspect), 0) from (
            select j.suspect
            from json_each(:queues) s cross join {schema}.jobs j
            where j.state = 'queued' and j.suspect > 0 and j.queue = s.value
              and j.task in (select value from json_each(:tasks))
              and not exists (select 1 from {schema}.queues q where q.queue = j.queue and q.paused)
            group by j.suspect)),
       (select nullif(json_group_array(queue), '[]') from {schema}.queues where limited),
       0;
