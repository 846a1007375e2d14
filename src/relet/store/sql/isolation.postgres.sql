-- isolation: the level of this transaction.
select current_setting('transaction_isolation')
