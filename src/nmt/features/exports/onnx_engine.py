"""Translate and score with onnxruntime, to verify an export to ONNX."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from nmt.compute.packages import import_optional
from nmt.config.schema import DecodingConfig
from nmt.decoding.beam import Hypothesis
from nmt.decoding.constraints import UNCONSTRAINED, Constraints
from nmt.decoding.engine import Engine
from nmt.features.exports.marian_engine import padded
from nmt.features.exports.onnx_graphs import DECODER, ENCODER, PAST, PRESENT
from nmt.text.special import BOS, EOS
from nmt.text.tokenizer import Tokenizer


class OnnxEngine(Engine):
    """Greedy search, as transformers.js has no other, with the graphs of an export."""

    name = "onnx"

    def __init__(self, folder: Path, tokenizer: Tokenizer, config: DecodingConfig, positions: int, ending: str) -> None:
        """Load the graphs, whose names have this ending; our own tokenizer splits text, see `check_tokenizer`."""
        super().__init__(tokenizer, config, positions, positions)
        self.device = torch.device("cpu")
        runtime = import_optional("onnxruntime")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        self.encoder, self.decoder = (
            runtime.InferenceSession(folder / f"{name}{ending}.onnx", options) for name in (ENCODER, DECODER)
        )
        self._present = [each.name for each in self.decoder.get_outputs() if each.name.startswith(PRESENT)]
        self._cache_shapes = {
            each.name: each.shape[1:] for each in self.decoder.get_inputs() if each.name.startswith(PAST)
        }

    def search(self, sources: list[list[int]], constraints: list[Constraints]) -> list[list[Hypothesis]]:
        """See `Engine.search`; hypotheses have no scores."""
        assert all(each == UNCONSTRAINED for each in constraints)
        encoded = self._encoded(sources)
        cache = self._empty_cache(len(sources))
        tokens = np.full((len(sources), 1), BOS)
        rows: list[list[int]] = [[] for _ in sources]
        unfinished = set(range(len(sources)))
        limits = [min(len(each) + self.config.extra_length, self.max_target_tokens) for each in sources]
        for step in range(max(limits)):
            scores, cache = self._decode(encoded, tokens, cache, use_cache=step > 0)
            tokens = scores[:, -1].argmax(-1)[:, None]
            for index in sorted(unfinished):
                rows[index].append(int(tokens[index, 0]))
                if rows[index][-1] == EOS or len(rows[index]) == limits[index] - 1:  # the last one would be EOS
                    unfinished.discard(index)
            if not unfinished:
                break
        return [[Hypothesis([piece for piece in row if piece != EOS], 0.0, 0.0)] for row in rows]

    def label_scores(self, sources: list[list[int]], targets: list[list[int]]) -> list[list[float]]:
        """See `Engine.label_scores`."""
        labels, _ = padded(targets)
        begun, _ = padded([[BOS, *target[:-1]] for target in targets])
        cache = self._empty_cache(len(sources))
        logits, _ = self._decode(self._encoded(sources), begun.numpy(), cache, use_cache=False)
        scores = torch.from_numpy(logits).log_softmax(-1).gather(2, labels[:, :, None])[:, :, 0]
        return [row[: len(target)].tolist() for row, target in zip(scores, targets, strict=True)]

    def _encoded(self, sources: Sequence[Sequence[int]]) -> dict[str, Any]:
        """Return what the decoder needs of the sources."""
        ids, mask = (each.numpy() for each in padded(sources))
        (states,) = self.encoder.run(None, {"input_ids": ids, "attention_mask": mask})
        return {"encoder_hidden_states": states, "encoder_attention_mask": mask}

    def _empty_cache(self, sentences: int) -> dict[str, Any]:
        """Return the cache that clients begin with: all axes that are not fixed are 0."""
        shapes = {
            name: [size if isinstance(size, int) else 0 for size in shape] for name, shape in self._cache_shapes.items()
        }
        return {name: np.zeros((sentences, *shape), np.float32) for name, shape in shapes.items()}

    def _decode(
        self, encoded: dict[str, Any], tokens: Any, cache: dict[str, Any], *, use_cache: bool
    ) -> tuple[Any, dict[str, Any]]:
        """Return the scores of the next tokens, and the cache for the next step."""
        feeds = {**encoded, **cache, "input_ids": tokens, "use_cache_branch": np.array([use_cache])}
        scores, *present = self.decoder.run(["logits", *self._present], feeds)
        names = [each.replace(PRESENT, PAST) for each in self._present]
        return scores, dict(zip(names, present, strict=True))
