"""Row-level deletes: position deletes, equality deletes and deletion vectors, and what they hit.

No I/O: bytes come in and go out.
"""
