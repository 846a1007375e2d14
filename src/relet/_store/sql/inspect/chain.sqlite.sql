-- All jobs of the chain that a job belongs to, or that goes by its id, though the job is gone. (By id, and by chain:
-- two ways into each table.)
with c as materialized (select coalesce((select chain from {schema}.all_jobs where id = :id), :id) as chain)
select {job} from {schema}.live_jobs where id in (select chain from c)
union all
select {job} from {schema}.live_jobs where position > 0 and chain in (select chain from c)
union all
select {job} from {schema}.over_jobs where id in (select chain from c)
union all
select {job} from {schema}.over_jobs where position > 0 and chain in (select chain from c);
