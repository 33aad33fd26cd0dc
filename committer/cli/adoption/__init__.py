"""`frazil table add-files`: files that others wrote, added to a table as they are.

No footer is read here: `workers.adoption` does.
"""
