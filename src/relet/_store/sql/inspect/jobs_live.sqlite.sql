-- A page of jobs that are not over, newest first by id, which contains the time.
select {job} from {schema}.live_jobs where {filter}
order by id desc
limit :limit;
