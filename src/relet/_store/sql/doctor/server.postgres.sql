-- The kind of server, and the role of this connection.
select current_setting('server_version_num')::integer, split_part(current_setting('server_version'), ' ', 1),
       current_user::text, current_database()::text, pg_is_in_recovery(), r.setting = 'on', r.source,
       current_setting('fsync') = 'on', current_setting('full_page_writes') = 'on',
       current_setting('synchronous_commit')
from pg_settings r
where r.name = 'default_transaction_read_only'
