-- Running -> succeeded, guarded by the lease, for jobs that nothing follows. Tells how many they were.
select number, watched, held from {schema}.succeed_plain(:ids::uuid[], :tokens::uuid[], :results::text[], {now})
