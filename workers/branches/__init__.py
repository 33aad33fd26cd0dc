"""A branch of a table as a change or a compaction has read it, and the attempts at changing it. On
the driver only.
"""
