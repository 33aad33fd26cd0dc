"""`frazil catalog` and `frazil namespace`. Commands for a table are in `tables`, not here."""
