"""The catalog in one DynamoDB table, in the layout of Java's DynamoDB catalog.

Its AWS client is made in `committer.aws`, not here.
"""
