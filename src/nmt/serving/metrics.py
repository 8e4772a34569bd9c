"""What the server counts and times, for Prometheus."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
SENTENCES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Metrics:
    """Counts, without anything of what clients have sent."""

    def __init__(self) -> None:
        registry = self.registry = CollectorRegistry()
        self.requests = Counter("nmt_requests", "Answers by route and status", ["route", "status"], registry=registry)
        self.request_seconds = Histogram(
            "nmt_request_seconds", "Seconds until the answer", ["route"], buckets=SECONDS, registry=registry
        )
        self.sentences = Counter("nmt_sentences", "Sentences accepted", ["model"], registry=registry)
        self.characters = Counter("nmt_characters", "Characters accepted", ["model"], registry=registry)
        self.waiting = Gauge("nmt_waiting_sentences", "Sentences that wait for a model", ["model"], registry=registry)
        self.batch_sentences = Histogram(
            "nmt_batch_sentences", "Sentences translated together", buckets=SENTENCES, registry=registry
        )
        self.batch_seconds = Histogram("nmt_batch_seconds", "Seconds per batch", buckets=SECONDS, registry=registry)
        self.restarts = Counter(
            "nmt_worker_restarts", "Processes of models that were replaced", ["model"], registry=registry
        )

    def text(self) -> bytes:
        """Return all figures in Prometheus' text format."""
        return bytes(generate_latest(self.registry))
