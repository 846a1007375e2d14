-- All jobs of the chain that a job belongs to, or that goes by its id, though the job is gone.
with c as materialized (
    select coalesce((select chain from {schema}.all_jobs where id = :id::text::uuid), :id::text::uuid) as chain
)
select {job} from {schema}.all_jobs
where id = any(array(select chain from c)) or (chain = any(array(select chain from c)) and "position" > 0)
