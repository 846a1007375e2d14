-- A page of jobs that have failed, or that are running, newest first by id. They are few among many, and each state has
-- an index.
select {job} from {schema}.live_jobs j where state = :rare_state::text::{schema}.job_state and {filter}
order by j.id desc
limit :limit::integer
