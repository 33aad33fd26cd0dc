"""`frazil serve` and `frazil status`: a committer, and its report of itself."""
