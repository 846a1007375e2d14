"""Programs that run one queue each: `setup`, `worker`, and `enqueue`, which reads jobs as JSON from standard input.

A job has a number and lasts so many seconds. FAULTS_URL is the database, FAULTS_EVENTS the file of events.
"""
