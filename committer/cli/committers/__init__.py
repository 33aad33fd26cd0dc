"""`frazil serve` and `frazil status`: a committer, and its report of itself.

The service itself is started by `committer.service.process`, not here.
"""
