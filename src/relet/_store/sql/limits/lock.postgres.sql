-- Lock the rows of the limits that apply, in order, then count the running jobs, including those with expired leases.
select queue, max_running, fair, rated, last_group, running from {schema}.lock_limits(:queues::text[])
