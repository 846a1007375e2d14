-- Jobs by id, from both tables.
select {job} from {schema}.live_jobs where id in (select value from json_each(:ids))
union all
select {job} from {schema}.over_jobs where id in (select value from json_each(:ids));
