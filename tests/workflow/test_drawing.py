"""Drawings of a workflow."""

from __future__ import annotations

from pathlib import Path

from rota.sdk.workflow.workflow import Workflow
from tests.workflow.written import app_of, flow

BODY = """
    x = extract.step(day)
    parts = transform.after(check.step(x)).options(at_once=50, tolerate="1%").map(x.files)
    done = load.options(may_fail=True, undo=unload, undo_failed=True).step(parts)
    with when(all_of(failed(done), x.note != 'a"b<c')):
        send.options(name="tell").after(parts, rule="all_done").step(text("empty {day}", day=day))
    with otherwise():
        inner.step()
    return default(done, {})
"""
INNER = "\n@app.workflow\ndef inner() -> Any:\n    anything.step(5)\n"


def drawn(folder: Path) -> Workflow[..., object]:
    return app_of(folder, INNER + flow(BODY)).workflows["w"]


def test_text(tmp_path: Path) -> None:
    condition = '(load failed) and (extract.note ≠ "a\\"b<c")'
    assert drawn(tmp_path).text().splitlines() == [
        "w(day)",
        "  extract",
        "  check        ← extract",
        "  transform ×  ← extract   after check   50 at once   tolerates 1%",
        "  load         ← transform   may fail   undo unload, also if it fails",
        f"  tell (send)  after all_done transform   when {condition}",
        f"  inner        when not ({condition})",
        "  result: default(load, {})",
    ]


def test_mermaid(tmp_path: Path) -> None:
    lines = drawn(tmp_path).mermaid().splitlines()
    assert lines[0] == "flowchart TD"
    assert '    s2["transform ×<br/>50 at once<br/>tolerates 1%"]' in lines
    assert "    s0 --> s2" in lines
    assert "    s1 -.-> s2" in lines
    assert "    s2 -.->|all_done| s4" in lines
    assert "    s3 -.->|when| s4" in lines
    assert lines[6].startswith('    s5[["inner<br/>when not (')
    assert "&quot;a\\&quot;b&lt;c&quot;" in lines[5]


def test_dot(tmp_path: Path) -> None:
    lines = drawn(tmp_path).dot().splitlines()
    assert lines[0] == 'digraph "w" {'
    assert '    "extract" -> "transform";' in lines
    assert '    "check" -> "transform" [style=dashed];' in lines
    assert '    "transform" -> "tell" [style=dashed, label="all_done"];' in lines
    assert any(line.startswith('    "inner" [label="inner\\nwhen') and line.endswith("shape=box3d];") for line in lines)
    assert lines[-1] == "}"
