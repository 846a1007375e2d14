-- Whether the pulse lies in the future: the clock was set back.
select touched_at > {now} + interval '1 second' from {schema}.pulse
