"""The public face of Frazil: what users import.

`load_table` reads a table; `frazil.spark` configures writers on Spark. Names are imported from
`frazil.public` when one is first asked for, so `import frazil` alone imports nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from frazil import spark as spark
    from frazil.public import *  # noqa: F403
else:
    from importlib import import_module

    def __getattr__(name: str) -> object:
        """Import a public name; `__all__` is for `from frazil import *`."""
        if name == "spark":
            return import_module("frazil.spark")
        if name == "__all__" or not name.startswith("_"):
            public = import_module("frazil.public")
            if name == "__all__" or name in public.__all__:
                return getattr(public, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), "spark", *import_module("frazil.public").__all__})
