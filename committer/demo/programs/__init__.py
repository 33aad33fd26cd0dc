"""The processes of the demo: started, watched, stopped.

No Spark is imported here: the applications are in `writers`.
"""
