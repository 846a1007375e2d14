"""Where jobs live: the verbs as flows, their SQL in twins, and a connection file for each database."""
