-- Delete the row of a worker that has stopped.
delete from {schema}.workers where name = :name::text returning name
