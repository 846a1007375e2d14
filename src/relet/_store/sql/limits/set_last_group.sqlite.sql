-- Record the key that was served last, in a queue that serves keys in turn.
update {schema}.queues set last_key = :key where queue = :queue;
