-- doctor_version: at which version the schema is, and for how many seconds.
select coalesce(max(version), 0), (julianday('now') - 2440587.5) * 86400 - max(applied_at)
from {schema}.migrations;
