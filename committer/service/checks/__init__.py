"""Content checks of requests, in this process or in worker processes."""
