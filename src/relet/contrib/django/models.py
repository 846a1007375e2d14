"""Jobs as a model of Django, for the admin: read-only, over a view of Relet."""
