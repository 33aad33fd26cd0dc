"""Types and single values: JSON and text forms, calendars, transforms, locations.

No I/O, and no other package of the format is imported here.
"""
