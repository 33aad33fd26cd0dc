"""`frazil table` and its commands."""
