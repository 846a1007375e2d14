-- drop_revived: nothing can have come between our look and our insert here, but the answer has the same shape.
select id from {schema}.jobs where false;
