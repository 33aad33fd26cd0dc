"""Content checks of requests, in this process or in worker processes.

The rules that they check are in `committer.plan`, not here.
"""
