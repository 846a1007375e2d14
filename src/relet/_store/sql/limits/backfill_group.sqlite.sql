-- Nothing to do: it was done when the queue was marked.
select id from {schema}.jobs where false and queue = :queue limit :limit;
