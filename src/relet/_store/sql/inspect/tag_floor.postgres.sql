-- The last of the newest `scan` jobs with a tag; no row if there are fewer.
select t.job::text from {schema}.tags t
where t.tag = :tag::text
  and t.job >= coalesce(:lowest::text, '00000000-0000-0000-0000-000000000000')::uuid
  and t.job < coalesce(:cursor::text, 'ffffffff-ffff-ffff-ffff-ffffffffffff')::uuid
order by t.job desc
limit 1 offset :scan::integer - 1
