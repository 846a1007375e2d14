-- await_renewals: the transaction has the lock that renewals need.
select :waited;
