-- The transaction was waited for already.
select :seconds;
