-- The last jobs of the chains. (By id and by chain: two lookups in each table.)
select {job} from {schema}.live_jobs where id in (select value from json_each(:chains)) and not continued
union all
select {job} from {schema}.live_jobs
where position > 0 and chain in (select value from json_each(:chains)) and not continued
union all
select {job} from {schema}.over_jobs where id in (select value from json_each(:chains)) and not continued
union all
select {job} from {schema}.over_jobs
where position > 0 and chain in (select value from json_each(:chains)) and not continued;
