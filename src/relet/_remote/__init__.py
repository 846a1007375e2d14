"""A worker's end of the worker protocol (docs/gateway.md): its documents, its connections, and the store in their place."""
