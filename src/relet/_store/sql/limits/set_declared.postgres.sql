-- Record the limits that code declares.
update {schema}.queues set declared = :declared::text::json where queue = :queue::text
