-- The transaction has the lock that renewals need.
select :waited;
