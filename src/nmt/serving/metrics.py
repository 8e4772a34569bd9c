"""What the server counts and times, for Prometheus; nothing of what clients have sent."""

from prometheus_client import Counter, Histogram

REQUESTS = Counter("nmt_requests", "Answers by route and status", ["route", "status"])
REQUEST_SECONDS = Histogram("nmt_request_seconds", "Seconds until the answer", ["route"])
SENTENCES = Counter("nmt_sentences", "Sentences accepted", ["model"])
BATCH_SECONDS = Histogram("nmt_batch_seconds", "Seconds per batch", ["model"])
RESTARTS = Counter("nmt_worker_restarts", "Processes that were replaced", ["model"])
