-- Remove the details of audited actions that name this value, which is a JSON text. Reads some of the actions after
-- `beyond`, and returns the last of them, and how many it has read.
update {schema}.audit set detail = null
where seq in (select seq from {schema}.audit where seq > :beyond order by seq limit :limit)
  and instr(detail, :value) > 0;

select max(seq), count(*) from (select seq from {schema}.audit where seq > :beyond order by seq limit :limit);
