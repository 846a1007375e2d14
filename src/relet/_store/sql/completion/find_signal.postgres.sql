-- What a job was told under a name.
select value::text from {schema}.signals where job = :job::text::uuid and name = :name::text
