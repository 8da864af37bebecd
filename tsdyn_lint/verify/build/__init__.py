"""Inside the worker: from a job's description to a `Subject` that can be probed."""
