"""Whether an OpenAPI document only grew since an earlier one, so that every client of the earlier one still works."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

METHODS = ("get", "put", "post", "patch", "delete")


def breaks(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """What a client of the document `before` may rely on and does not find in `after`."""
    return sorted(set(_breaks(before, after)))


def _breaks(before: dict[str, Any], after: dict[str, Any]) -> Iterator[str]:
    for path, methods in before["paths"].items():
        for method in (name for name in METHODS if name in methods):
            where = f"{method.upper()} {path}"
            now = after["paths"].get(path, {}).get(method)
            if now is None:
                yield f"{where} is gone"
            else:
                yield from _of_operation(where, methods[method], now, before, after)


def _of_operation(where: str, old: Any, new: Any, before: Any, after: Any) -> Iterator[str]:
    known = {(one["in"], one["name"]): one for one in old["parameters"]}
    found = {(one["in"], one["name"]): one for one in new["parameters"]}
    for key in known.keys() - found.keys():
        yield f"{where}: parameter {key[1]} is gone"
    for key, one in found.items():
        if one["required"] and not known.get(key, {"required": False})["required"]:
            yield f"{where}: parameter {key[1]} is required now"
        elif key in known:
            yield from _Comparison(before, after, is_sent=True).of(
                f"{where} {key[1]}", known[key]["schema"], one["schema"]
            )
    old_body, new_body = old.get("requestBody"), new.get("requestBody")
    if new_body is not None and new_body["required"] and (old_body is None or not old_body["required"]):
        yield f"{where}: a body is required now"
    if old_body is not None:
        content = {} if new_body is None else new_body["content"]
        yield from _of_content(where, old_body["content"], content, _Comparison(before, after, is_sent=True))
    for status, answer in old["responses"].items():
        if status[0] != "2":
            continue
        if status not in new["responses"]:
            yield f"{where}: status {status} is gone"
            continue
        content = new["responses"][status].get("content", {})
        comparison = _Comparison(before, after, is_sent=False)
        yield from _of_content(f"{where} {status}", answer.get("content", {}), content, comparison)


def _of_content(where: str, old: Any, new: Any, comparison: _Comparison) -> Iterator[str]:
    for media, about in old.items():
        if media not in new:
            yield f"{where}: {media} is gone"
        else:
            yield from comparison.of(where, about["schema"], new[media]["schema"])


class _Comparison:
    """Of schemas that clients send, or that they get."""

    def __init__(self, before: Any, after: Any, *, is_sent: bool) -> None:
        self._before, self._after, self._is_sent = before, after, is_sent
        self._seen: set[tuple[str, str]] = set()

    def of(self, where: str, old: Any, new: Any) -> Iterator[str]:
        old, new = ({} if one is True else {"not": {}} if one is False else one for one in (old, new))
        names = (old.get("$ref", ""), new.get("$ref", ""))
        if all(names):
            if names in self._seen:
                return
            self._seen.add(names)
        old, new = _resolved(old, self._before), _resolved(new, self._after)
        if "anyOf" in old or "anyOf" in new:
            yield from self._of_choices(where, old, new)
            return
        if old.get("type") != new.get("type") and new != {} and not (self._is_sent and "type" not in new):
            yield f"{where}: {old.get('type')} became {new.get('type')}"
            return
        if self._is_sent:
            for value in set(map(str, old.get("enum", ()))) - set(map(str, new.get("enum", old.get("enum", ())))):
                yield f"{where}: the value {value} is gone"
        yield from self._of_members(where, old, new)
        if "items" in old and "items" in new:
            yield from self.of(f"{where}[]", old["items"], new["items"])

    def _of_members(self, where: str, old: Any, new: Any) -> Iterator[str]:
        members = new.get("properties", {})
        for name, about in old.get("properties", {}).items():
            if name not in members:
                yield f"{where}: member {name} is gone"
            else:
                yield from self.of(f"{where}.{name}", about, members[name])
        needed, promised = set(new.get("required", ())), set(old.get("required", ()))
        if self._is_sent:
            yield from (f"{where}: member {name} is required now" for name in needed - promised)
        else:
            yield from (f"{where}: member {name} may be missing now" for name in (promised - needed) & members.keys())

    def _of_choices(self, where: str, old: Any, new: Any) -> Iterator[str]:
        """A choice that is like one of the other document must be so still; a client must not meet a new kind."""
        olds, news = old.get("anyOf", [old]), new.get("anyOf", [new])
        # Every choice that may be sent must fit one that is accepted, and every choice that is given one that is known.
        for one in olds if self._is_sent else news:
            pairs = [(one, other) for other in news] if self._is_sent else [(other, one) for other in olds]
            found = [list(self._fresh().of(where, *pair)) for pair in pairs]
            if all(found):
                yield min(found, key=len)[0]

    def _fresh(self) -> _Comparison:
        made = _Comparison(self._before, self._after, is_sent=self._is_sent)
        made._seen = set(self._seen)
        return made


def _resolved(schema: Any, document: Any) -> Any:
    while "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema
