"""Failures of commands: one line on stderr that names the problem and its remedy, and an exit code.

0    done
1    valid, but unsuccessful: a check failed, an awaited execution failed, a queue is full
2    bad input, or a database that cannot be used
130  interrupted (Ctrl-C)
141  the reader of the output closed the pipe
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

import click

from rota.cli import text
from rota.domain.errors import Conflict, ExecutionError, RotaError

UNSUCCESSFUL, BAD_INPUT, INTERRUPTED, PIPE_CLOSED = 1, 2, 130, 141


def guarded(work: Callable[[], None]) -> int:
    """Runs a command and returns its exit code; an expected exception becomes one line."""
    try:
        work()
        sys.stdout.flush()
    except click.exceptions.Exit as end:
        return end.exit_code
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except BrokenPipeError:
        _forget_stdout()
        return PIPE_CLOSED
    except click.exceptions.NoArgsIsHelpError as error:
        print(error.format_message(), file=sys.stderr)
        return BAD_INPUT
    except click.ClickException as error:
        return _say(_usage(error), BAD_INPUT)
    except (Conflict, ExecutionError) as error:
        return _say(str(error), UNSUCCESSFUL)
    except RotaError as error:
        return _say(str(error), BAD_INPUT)
    except OSError as error:
        return _say(_system(error), BAD_INPUT)
    except Exception as error:
        if words := _database(error):
            return _say(words, BAD_INPUT)
        raise
    return 0


def _say(words: str, code: int) -> int:
    from rota.domain.url import masked_text  # lazy: a command that does not fail starts faster without msgspec

    print(f"rota: {text.harmless(masked_text(' '.join(words.split())))}", file=sys.stderr)
    return code


def _usage(error: click.ClickException) -> str:
    words = error.format_message().rstrip(".")
    context = error.ctx if isinstance(error, click.UsageError) else None
    end = "" if words.endswith("?") else ";"
    return f"{words[:1].lower()}{words[1:]}{end} see `{context.command_path if context else 'rota'} --help`"


def _system(error: OSError) -> str:
    where = f"{error.filename}: " if error.filename else ""
    return f"{where}{error.strerror or error}; check the path and its permissions"


def _database(error: Exception) -> str:
    """The message for an error of PostgreSQL that the store has not translated; empty for any other error."""
    if "psycopg" not in sys.modules:  # Most commands start faster without it.
        return ""
    import psycopg

    from rota.store.postgres.errors import translated

    return str(translated(error, "the database")) if isinstance(error, psycopg.Error) else ""


def _forget_stdout() -> None:
    """Discards buffered output, which the interpreter would otherwise fail to write when it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
