-- outlook: whether anything is there for upkeep to do: leases that ran out, nudges, jobs that are due or will be.
select exists (select 1 from {schema}.jobs where expires_at <= {now}),
       exists (select 1 from {schema}.nudges),
       (select run_at - {now} from {schema}.jobs where wait = 'time' order by run_at, seq limit 1);
