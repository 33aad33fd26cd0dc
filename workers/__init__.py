"""The Spark side: tables written, changed, compacted and read, and the requests for it published.

Nothing here plans or makes a commit: the committer does. Users import `frazil`.
"""
