"""Table metadata: the model, its JSON form, and the rules that it keeps.

No I/O. Changes of it are in `updates`.
"""
