"""`frazil producer` and `frazil quarantine`: an operator's decisions about requests.

`committer.service.admin` carries the decisions out: nothing of that is here.
"""
