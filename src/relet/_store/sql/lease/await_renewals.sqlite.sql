-- Nothing to do: the transaction has the lock that renewals need.
select :waited;
