-- The version of the schema, and its age in seconds; the version that a release must know to work with it, and the
-- release that migrated last.
select coalesce(max(version), 0), (julianday('now') - 2440587.5) * 86400 - max(applied_at),
       coalesce(max(coalesce(oldest, version)), 0),
       (select release from {schema}.migrations order by version desc limit 1)
from {schema}.migrations;
