-- running: how many jobs of each queue run now, expired leases included.
select queue, count(*) from jobs where state = 'running' group by queue;
