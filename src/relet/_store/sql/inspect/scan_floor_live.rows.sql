-- The last of the newest `scan` jobs that are not over; no row if there are fewer.
select id::text from {schema}.jobs
where id >= coalesce(:lowest::text, '00000000-0000-0000-0000-000000000000')::uuid
  and id < coalesce(:cursor::text, 'ffffffff-ffff-ffff-ffff-ffffffffffff')::uuid
order by id desc
limit 1 offset :scan::integer - 1
