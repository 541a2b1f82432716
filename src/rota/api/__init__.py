"""The HTTP API: a table of routes over the same readers, shapes and operations that the commands use.

    asgi.py       one request: guard, route, caller, handler, answer; every error becomes a problem
    guard.py      what is checked before routing: sizes, Host, Origin, credentials
    route.py      the form of a route; routes.py: the table of all of them
    resources/    the handlers, one file per noun
    call.py       what a handler gets: the caller's rights, the namespace, reads and transactions
    openapi.py    the OpenAPI document, made from the table

A handler reads with `call.read` and changes something with `call.act`, which is one transaction together with the
request's Idempotency-Key.
"""
