"""A worker's end of the worker protocol (docs/gateway.md).

wire      the documents of the protocol
channel   connections to gateways
notifier  requests to cancel or pause
store     the flows of a worker as requests
"""
