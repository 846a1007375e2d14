-- The last of the newest `scan` jobs with a tag; no row if there are fewer.
select job from {schema}.tags
where tag = :tag and job >= coalesce(:lowest, '') and job < coalesce(:cursor, 'g')
order by job desc
limit 1 offset :scan - 1;
