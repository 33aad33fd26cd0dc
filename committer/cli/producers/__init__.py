"""`frazil producer` and `frazil quarantine`: an operator's decisions about requests.

What a decision does is in `committer.service.admin`, not here.
"""
