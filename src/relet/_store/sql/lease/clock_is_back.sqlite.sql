-- Whether the pulse lies in the future: the clock was set back.
select touched_at > {now} + 1 from {schema}.pulse;
