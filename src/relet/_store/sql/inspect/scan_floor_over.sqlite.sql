-- The last of so many jobs that are over, newest first; nothing if there are fewer.
select id from {schema}.finished
where id >= coalesce(:lowest, '') and id < coalesce(:before, 'g')
order by id desc
limit 1 offset :scan - 1;
