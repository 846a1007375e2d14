-- The last of the newest `scan` jobs that are not over; no row if there are fewer.
select id from {schema}.jobs
where id >= coalesce(:lowest, '') and id < coalesce(:cursor, 'g')
order by id desc
limit 1 offset :scan - 1;
