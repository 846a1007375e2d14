-- A page of jobs that are over, newest first by id, which contains the time.
select {job} from {schema}.over_jobs j where {filter}
order by j.id desc
limit :limit::integer
