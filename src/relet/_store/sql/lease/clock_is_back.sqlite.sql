-- Whether the pulse lies in the future: the clock was put back since.
select touched_at > {now} + 1 from {schema}.pulse;
