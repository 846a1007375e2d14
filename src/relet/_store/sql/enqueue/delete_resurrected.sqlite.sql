-- Nothing to do: no other transaction can write between our read and our insert.
select :ids where false;
