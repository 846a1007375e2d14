-- What a job was told under a name.
select value from {schema}.signals where job = :job and name = :name;
