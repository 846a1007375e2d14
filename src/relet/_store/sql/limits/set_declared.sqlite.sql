-- Record the limits that code declares.
update {schema}.queues set declared = :declared where queue = :queue;
