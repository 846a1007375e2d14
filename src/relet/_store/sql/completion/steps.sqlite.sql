-- The steps that attempts of a job have stored, and how many seconds of each wait are left.
select kind, name, result, until - {now} from {schema}.steps where job = :job;
