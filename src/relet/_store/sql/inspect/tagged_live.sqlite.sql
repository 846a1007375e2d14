-- A page of jobs with a tag that are not over, newest first by id. Goes through the index of the tags, and finds each
-- job by id.
select {job} from {schema}.live_jobs
where id in (
    select job from {schema}.tags where tag = :tag and job >= coalesce(:lowest, '') and job < coalesce(:cursor, 'g')
) and {filter}
order by id desc
limit :limit;
