"""Operations on a branch: the files that each adds and removes, in steps, and the branch then.

`plan/validation/` decides whether an operation may land. No I/O: a plan asks for the bytes that it
lacks (`head.py`).
"""
