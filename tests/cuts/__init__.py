"""Cut tests: each verb, with the connection lost before and after each of its messages, while a rival acts in between.

What the call says and what is in the store afterwards must be those of one execution of the call, before or after the
rival's action. `verbs.py` has the verbs and their rivals, `cut_stores.py` the stores, `outcomes.py` what is compared.
"""
