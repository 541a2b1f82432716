"""The fingerprint of an error: equal for failures with the same cause, although their messages name other values.

It is a hash of the type, of the user's function that raised, and of the message without the parts that differ between
executions: numbers, ids, addresses, and everything in quotes. Line numbers are left out, so that it survives a deploy.

A library often raises one error for many reasons: `connection refused` comes from the same line of the HTTP client for
every service. So the function is the innermost one of the user's own code, and the library's only if there is none.
"""

from __future__ import annotations

import hashlib
import re

from rota.domain.outcome import Error

DIGITS = 16
_MOST_MESSAGE = 500
_FRAME = re.compile(r'^[ |]*File "([^"\n]*)", line \d+, in (\S+)', re.MULTILINE)
_INSTALLED = re.compile(r"^<|/(?:site|dist)-packages/|/lib(?:64)?/(?:python|pypy)\d[\d.]*t?(?:\.zip)?/")
"""Files of a library, of the standard library, or of code without a file, such as the `__init__` of a dataclass."""
_ROTA = f"{__file__.replace(chr(92), '/').rpartition('/domain/')[0]}/"
"""The folder of Rota, which is not an installed package while Rota itself is developed."""
_QUOTED = re.compile(r"""(?<!\w)'[^'\n]*'(?!\w)|"[^"\n]*"|`[^`\n]*`""")
_TOKEN = re.compile(r"(?<=[A-Za-z]_)(?=[A-Za-z]*\d)[A-Za-z0-9]{6,}\b")
"""An id behind its kind, such as req_Wm2kP0vA."""
_ID = re.compile(r"\b(?=[0-9a-f-]*\d)[0-9a-f]{8,}(?:-[0-9a-f]+)*\b", re.IGNORECASE)
_NUMBER = re.compile(r"0x[0-9a-f]+|\d+(?:[.,:]\d+)*", re.IGNORECASE)


def of(error: Error) -> str:
    """Sixteen hexadecimal digits."""
    parts = "\n".join((error.type, raised_at(error.traceback), normalised(error.message)))
    return hashlib.sha256(parts.encode()).hexdigest()[:DIGITS]


def normalised(message: str) -> str:
    """The message with a mark in place of each value."""
    text = _QUOTED.sub("?", message[:_MOST_MESSAGE])
    for varying in (_TOKEN, _ID, _NUMBER):
        text = varying.sub("?", text)
    return " ".join(text.split())


def raised_at(traceback: str) -> str:
    """The file and the function of the innermost frame of the user's own code, or of the innermost frame of all.

    The folder is left out, because machines differ in it. The traceback of a cause comes before that of the error.
    """
    frames = [(path.replace("\\", "/"), function) for path, function in _FRAME.findall(traceback)]
    if not frames:
        return ""
    path, function = next((frame for frame in reversed(frames) if is_own(frame[0])), frames[-1])
    return f"{path.rpartition('/')[2]}:{function}"


def is_own(path: str) -> bool:
    """Whether it is a file of the user's own code. Its folders are separated by slashes."""
    return not path.startswith(_ROTA) and _INSTALLED.search(path) is None
