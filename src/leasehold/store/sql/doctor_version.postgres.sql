-- doctor_version: at which version the schema is, and for how many seconds.
select coalesce(max(version), 0), extract(epoch from statement_timestamp() - max(applied_at))::float8
from {schema}.migrations
