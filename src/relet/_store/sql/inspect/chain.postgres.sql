-- All jobs of the chain that a job belongs to, also if the job that gave the chain its id was pruned.
with c as materialized (
    select coalesce((select chain from {schema}.all_jobs where id = :id::text::uuid), :id::text::uuid) as chain
)
select {job} from {schema}.all_jobs
where id = any(array(select chain from c)) or (chain = any(array(select chain from c)) and "position" > 0)
