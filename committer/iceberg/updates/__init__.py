"""Changes of table metadata: updates, requirements, and their JSON forms.

No I/O: what sends or stores a change is a catalog.
"""
