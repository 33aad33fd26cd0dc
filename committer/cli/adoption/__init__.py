"""`frazil table add-files`: files that others wrote, added to a table as they are."""
