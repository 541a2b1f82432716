"""A release that waits for a person: build, ask, deploy to one region after the other.

    rota dev examples.release:app

In a second terminal: `rota start release version=1.4`, `rota runs`, `rota run approve ID --note "checked on staging"`.
"""

from __future__ import annotations

from rota import App
from rota.workflow import approve, chain, first, otherwise, sleep, text, when

app = App("releases")


@app.job
def build(version: str) -> str:
    return f"image:{version}"


@app.job
def deploy(image: str, region: str) -> str:
    return f"{image} in {region}"


@app.job
def tell(version: str, note: str) -> str:
    return f"{version} is not released: {note or 'no answer came in time'}"


@app.workflow
def release(version: str) -> str:
    image = build.step(version)
    answer = approve.after(image)(text("Release {v} to production?", v=version), who=["ops"], timeout="2d")
    with when(answer.approved):
        first_region = deploy.options(name="deploy_eu").step(image, "eu")
        second_region = deploy.options(name="deploy_us").step(image, "us")
        chain(first_region, sleep("30m"), second_region)
    with otherwise():
        told = tell.step(version, answer.note)
    return first(second_region, told)
