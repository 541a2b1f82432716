"""A job: a function that can be enqueued. Called directly, it is still the function."""

from __future__ import annotations

import asyncio
import copy
import functools
import inspect
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, ParamSpec, Protocol, TypeVar, Unpack, cast

import msgspec

from rota.domain import overrides
from rota.domain.claim import Claim
from rota.domain.dependency import JobRef
from rota.domain.errors import DefinitionError
from rota.domain.payload import digest
from rota.executors.attempt_state import AttemptState
from rota.executors.context import Context
from rota.executors.signature import args_and_kwargs
from rota.ops import enqueue, submission
from rota.ops.submission import Accepted, Header, Item
from rota.sdk.client import Client, Parent
from rota.sdk.handle import Handle, handle_on
from rota.sdk.options import Options, applied, checked_tags
from rota.sdk.registered_job import RegisteredJob
from rota.sdk.transaction import Caller, atransact, transact
from rota.sdk.workflow.stepped import Stepped, Stepping, check_call, check_enqueue

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R")
Encode = Callable[[tuple[Any, ...], dict[str, Any], int], str]
"""Encodes the arguments of a call (args, kwargs) as JSON of at most this many bytes."""
EncodeMany = Callable[[Sequence[Any], int], list[str]]
"""The same for the calls of a bulk enqueue."""
A_contra = TypeVar("A_contra", contravariant=True)
_UNBOUND = Claim("", 0, 0, 1, 0, 0, 0, 0, None, "", "{}", None, 0, 0)


class UndoJob(Protocol[A_contra]):
    """A job that can be called with one argument: the result of the step that it undoes."""

    def enqueue(self, result: A_contra, /) -> object: ...


class Job(Stepped[P, T], Generic[P, T, R]):
    """`P` are the function's parameters, `T` is the type of the result, `R` that of a direct call."""

    def __init__(self, registered: RegisteredJob, client: Client, app: str) -> None:
        functools.update_wrapper(self, registered.function)
        definition = registered.definition
        self._registered = registered
        self._client = client
        self._app = app
        self._result_type = registered.signature.result_type
        self._defaults = Header(
            namespace=client.settings.namespace,
            app=app,
            job=definition.name,
            queue=definition.queue,
            actor="sdk",
            priority=definition.priority,
            start_within_s=definition.start_within_s,
        )
        self._encode: Encode = registered.signature.encode
        self._encode_many: EncodeMany = registered.signature.encode_many
        self._options = Options()
        self._header = self._defaults
        self._is_keyed = False
        self._caller: Caller | None = None
        self._parent: Parent | None = None

    @property
    def name(self) -> str:
        return self._registered.name

    @property
    def _ref(self) -> JobRef:
        return JobRef(self._app, self.name)

    def __repr__(self) -> str:
        return f"Job({self._app}.{self.name})"

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Calls the function here and now, without Rota."""
        check_call(self.name)
        function, context = self._registered.function, self._registered.signature.context_parameter
        if context is not None and context not in kwargs and not any(isinstance(arg, Context) for arg in args):
            imaginary = Context(AttemptState(_UNBOUND, None, self._registered.target.completions))
            position = list(inspect.signature(function).parameters).index(context)
            if position < len(args):
                return function(*args[:position], imaginary, *args[position:], **kwargs)  # type: ignore[no-any-return]
            kwargs[context] = imaginary
        return function(*args, **kwargs)  # type: ignore[no-any-return]

    def options(self, *, undo: UndoJob[T] | None = None, **given: Unpack[Options]) -> Job[P, T, R]:
        """The same job, enqueued with these options instead of its defaults.

        `undo` is for a step of a workflow: the job that undoes it, whose first parameter takes the result of the step.
        """
        changed = {name: value for name, value in {**given, "undo": undo}.items() if value is not None}
        if "retry" in given and given["retry"] is None:
            changed["retry"] = False  # As in @app.job(…), None means one attempt.
        if given.get("tags") is not None:
            changed["tags"] = checked_tags(given["tags"] or ())  # A generator of tags can be read only once.
        return self._with(cast("Options", {**self._options, **changed}), self._caller, self._parent)

    def within(self, connection: Any, *, notify: bool = False) -> Job[P, T, R]:
        """The same job, enqueued in the transaction of `connection`: rolled back there means never enqueued.

        The connection is yours, to the app's PostgreSQL database: a connection, cursor or session of psycopg,
        SQLAlchemy or Django, sync for `enqueue` and async for `aenqueue`. It is committed by you. `notify` wakes
        workers with your commit; that costs, and without it they look every two seconds (`poll_s`).
        """
        return self._with(self._options, Caller(connection, notify), self._parent)

    def _child_of(self, parent: str, fence: int, headers: Mapping[str, str]) -> Job[P, T, R]:
        """The same job, enqueued by an attempt of another execution, whose headers it inherits; for `ctx.enqueue`."""
        if self._caller is not None:
            raise DefinitionError("ctx.enqueue has a transaction of its own: use job.within(…).enqueue, without ctx")
        inherited = {**headers, **(self._options.get("headers") or {})}
        return self._with(cast("Options", {**self._options, "headers": inherited}), None, (parent, fence))

    def _with(self, options: Options, caller: Caller | None, parent: Parent | None) -> Job[P, T, R]:
        changed = copy.copy(self)
        changed._options, changed._parent = options, parent
        changed._header = applied(options, self._defaults)
        changed._is_keyed = changed._header.is_keyed
        if parent is not None:
            changed._header = msgspec.structs.replace(changed._header, parent=parent[0])
        # An enqueue with a key may be refused when half of it is written.
        changed._caller = None if caller is None else msgspec.structs.replace(caller, guard=changed._is_keyed)
        return changed

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Handle[T]:
        """Accepts one execution: when this returns, it is on the disk."""
        (accepted,) = self._accept([self._item(args, kwargs)])
        return self._handle(accepted)

    async def aenqueue(self, *args: P.args, **kwargs: P.kwargs) -> Handle[T]:
        """`enqueue`, without blocking the event loop."""
        item = self._item(args, kwargs)
        if self._caller is None:
            (accepted,) = await self._client.aenqueue(self._header, [item], self._parent)
        else:
            (accepted,) = await self._awithin(self._caller, [item])
        return self._handle(accepted)

    def enqueue_many(self, calls: Iterable[Any]) -> list[Handle[T]]:
        """Accepts all of `calls` or none, in one transaction, at most 50,000.

        Each call is a dict of arguments by name, a tuple of positional ones, or a single argument.
        """
        items = self._items(calls)
        return self._handles(self._accept(items)) if items else []

    async def aenqueue_many(self, calls: Iterable[Any]) -> list[Handle[T]]:
        if self._caller is None:
            return await asyncio.to_thread(self.enqueue_many, calls)
        if not (items := self._items(calls)):
            return []
        return self._handles(await self._awithin(self._caller, items))

    def handle(self, id: str) -> Handle[T]:
        """A handle on an execution whose id is known; its `result` and `info` refuse one of another job."""
        return handle_on(self._client, id, self._result_type, (self._app, self.name))

    def _of_version(self, number: int, encode: Encode) -> Job[P, T, R]:
        """The job of a workflow in another version. `encode` checks the arguments against the graph of that version."""
        changed = copy.copy(self)
        changed._encode = encode
        changed._encode_many = lambda calls, most: [encode(*args_and_kwargs(call), most) for call in calls]
        changed._header = msgspec.structs.replace(self._header, overrides=overrides.of_version(number))
        return changed

    def _stepping(self) -> Stepping:
        return Stepping(self._app, self.name, False, self._registered.signature, self._result_type, self._options)

    def _accept(self, items: list[Item]) -> list[Accepted]:
        if self._caller is None:
            return self._client.enqueue(self._header, items, self._parent)
        return transact(self._client.database(), self._caller, lambda tx: enqueue.enqueue(tx, self._header, items))

    async def _awithin(self, caller: Caller, items: list[Item]) -> list[Accepted]:
        return await atransact(self._client.database(), caller, lambda tx: enqueue.enqueue(tx, self._header, items))

    def _items(self, calls: Iterable[Any]) -> list[Item]:
        check_enqueue(self.name, self._options)
        if self._header.key is not None:
            raise DefinitionError(
                "key= names one execution; enqueue_many makes many. Use unique=, or enqueue one by one"
            )
        # Before any work is done; and the calls may have no end.
        calls = list(itertools.islice(calls, submission.MOST_ITEMS + 1))
        submission.check_count(len(calls))
        texts = self._encode_many(calls, self._client.settings.max_payload_bytes)
        submission.check_bytes(sum(map(len, map(str.encode, texts))))
        ids = self._client.ids.many(len(texts))
        return list(map(Item, ids, texts, map(digest, texts)) if self._is_keyed else map(Item, ids, texts))

    def _item(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Item:
        check_enqueue(self.name, self._options)
        text = self._encode(args, kwargs, self._client.settings.max_payload_bytes)
        return Item(self._client.ids.new(), text, digest(text) if self._is_keyed else "")

    def _handles(self, accepted: list[Accepted]) -> list[Handle[T]]:
        client, result_type = self._client, self._result_type
        return [Handle(client, one.id, result_type, created=one.created) for one in accepted]

    def _handle(self, accepted: Accepted) -> Handle[T]:
        return Handle(self._client, accepted.id, self._result_type, created=accepted.created)


def registered(job: Job[..., Any, Any]) -> RegisteredJob:
    """For the app, the commands and the harness."""
    return job._registered
