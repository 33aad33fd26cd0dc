"""Claims the shards of this committer. Leases are an optimization: no verdict rests on them."""
