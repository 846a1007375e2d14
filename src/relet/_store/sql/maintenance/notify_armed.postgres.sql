-- Notify one sleeping worker of each kind. A notification takes a lock that all commits share.
select {schema}.wake({now}, :channel::text, null, null, 1) from {schema}.arming where armed_until > {now}
