"""What the server counts and times, for Prometheus; nothing of what clients have sent."""

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest


class Metrics:
    """The counts of a server."""

    def __init__(self) -> None:
        registry = self.registry = CollectorRegistry()
        self.requests = Counter("nmt_requests", "Answers by route and status", ["route", "status"], registry=registry)
        self.seconds = Histogram("nmt_request_seconds", "Seconds until the answer", ["route"], registry=registry)
        self.sentences = Counter("nmt_sentences", "Sentences accepted", ["model"], registry=registry)
        self.batches = Histogram("nmt_batch_seconds", "Seconds per batch", ["model"], registry=registry)
        self.restarts = Counter("nmt_worker_restarts", "Processes that were replaced", ["model"], registry=registry)

    def text(self) -> bytes:
        """Return all figures in Prometheus' text format."""
        return bytes(generate_latest(self.registry))
