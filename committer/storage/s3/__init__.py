"""The storage on S3, and on servers of its protocol.

Its client is made in `committer.aws`, not here.
"""
