-- Nothing can have come between our look and our insert here.
select :ids where false;
