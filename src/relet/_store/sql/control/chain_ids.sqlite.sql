-- All jobs of the chains.
select id from {schema}.live_jobs where id in (select value from json_each(:chains))
union all
select id from {schema}.live_jobs where position > 0 and chain in (select value from json_each(:chains))
union all
select id from {schema}.over_jobs where id in (select value from json_each(:chains))
union all
select id from {schema}.over_jobs where position > 0 and chain in (select value from json_each(:chains))
order by id;
