group_key is not null and queue = any(array(select l.queue from {schema}.group_limits l))
