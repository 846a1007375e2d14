-- What people have said of how many jobs may start.
select queue, key, rate, per from {schema}.rates order by queue, key;
