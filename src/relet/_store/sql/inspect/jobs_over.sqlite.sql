-- A page of jobs that are over, newest first by id, which contains the time.
select {job} from {schema}.over_jobs where {filter}
order by id desc
limit :limit;
