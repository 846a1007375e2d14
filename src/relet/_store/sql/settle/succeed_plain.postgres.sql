-- Running -> succeeded, guarded by the lease, for jobs without a successor. Returns how many succeeded.
select number, watched, held from {schema}.succeed_plain(:ids::uuid[], :tokens::uuid[], :results::text[], {now})
