"""`frazil catalog` and `frazil namespace`."""
