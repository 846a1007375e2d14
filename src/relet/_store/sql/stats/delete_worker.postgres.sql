-- A worker has stopped in good order.
delete from {schema}.workers where name = :name::text returning name
