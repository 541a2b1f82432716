"""How the property tests run: no time limit per example, because this machine may be busy with others."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile(
    "rota", deadline=None, max_examples=150, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("rota")
