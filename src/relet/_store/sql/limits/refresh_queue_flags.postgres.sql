-- Set the flags of a queue, whose row an earlier statement has locked: does it have rates or limits by group,
-- and do groups matter?
update {schema}.queues q
set rated = exists (select from {schema}.rates r where r.queue = q.queue)
         or exists (select from {schema}.group_limits l where l.queue = q.queue),
    by_group = q.fair or exists (select from {schema}.rates r where r.queue = q.queue and r.group_key <> '')
            or exists (select from {schema}.group_limits l where l.queue = q.queue)
where queue = :queue::text
