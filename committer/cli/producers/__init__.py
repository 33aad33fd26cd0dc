"""`frazil producer` and `frazil quarantine`: an operator's decisions about requests."""
