"""Throughput and latency of Rota and of other task queues: `python -m benchmarks`. See README.md in this folder."""
