"""When msgspec learns a type: on import, in one thread, never on the first use.

msgspec builds the description of a Struct when a Struct is decoded for the first time. It stores the unfinished
description on the class and then fills in the fields, and for an enum or another Struct that runs Python code, in which
the interpreter may switch threads. A second thread that decodes the same Struct at that moment reads an empty field and
the process ends with a segmentation fault (msgspec 0.22). So a module that decodes a Struct of its own has a `Decoder`
for it at module level, or calls `prepare`. Types that are only known at run time need a lock: see
`store/transaction_base.py`.
"""

from __future__ import annotations

from typing import Any

import msgspec


def prepare(*kinds: Any) -> None:
    """Builds the descriptions of these types, and of all types in them, for `msgspec.convert`."""
    for kind in kinds:
        msgspec.json.Decoder(kind)
