-- Insert the tags of new jobs.
insert or ignore into {schema}.tags (tag, job)
select json_extract(value, '$.tag'), json_extract(value, '$.job') from json_each(:batch);
