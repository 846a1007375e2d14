-- All jobs of the chain that a job belongs to, also if the job that gave the chain its id was pruned. (By id and by
-- chain: two lookups in each table.)
with c as materialized (select coalesce((select chain from {schema}.all_jobs where id = :id), :id) as chain)
select {job} from {schema}.live_jobs where id in (select chain from c)
union all
select {job} from {schema}.live_jobs where position > 0 and chain in (select chain from c)
union all
select {job} from {schema}.over_jobs where id in (select chain from c)
union all
select {job} from {schema}.over_jobs where position > 0 and chain in (select chain from c);
