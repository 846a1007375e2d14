-- What attempts of a job have kept, and how long what they wait for is ahead.
select kind, name, result, until - {now} from {schema}.steps where job = :job;
