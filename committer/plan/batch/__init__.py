"""The batch of requests that one commit takes, and the checks of each request and its manifests.

Nothing here knows of snapshots that were committed. No I/O.
"""
