-- Remove the details of audited actions that name this value, which is a JSON text.
update {schema}.audit set detail = null where instr(detail, :value) > 0;
