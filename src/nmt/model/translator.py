"""A Transformer that translates on a CPU: the encoder, and each step of the decoder, is one call of `transformer.c`.

Shapes: S sentences of a batch, R rows (hypotheses) of a step, K rows per sentence, V words of the target vocabulary,
C continuations of a sentence.
"""

import ctypes
from collections.abc import Sequence
from ctypes import Structure, c_float, c_int32, c_int64, c_void_p
from typing import cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nmt.model.activations import activation_of
from nmt.model.interface import TranslationModel
from nmt.model.kernels.c.library import LANES, computes_in_c
from nmt.model.kernels.c.products import Matrix, PackedMatrix, scratch_for
from nmt.model.layers import DecoderLayer, EncoderLayer
from nmt.model.positions import Places
from nmt.model.transformer import Transformer
from nmt.text.special import BOS, EOS, PAD

IN_C = (torch.float32, torch.bfloat16, torch.int8)
"""The types of numbers in which the operations in C multiply."""
ACTIVATIONS = (F.relu, F.gelu, F.silu)
"""The activations of `transformer.c`, in its order."""
BLOCK_ROWS = 96
"""Rows whose scores are in memory at a time when continuations are chosen."""
PIECE = 64
"""Scores of a row whose maximum is remembered."""
FIRST_SLOTS = 24
"""Slots of the cache that are allocated per row at first."""

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]
Flags = npt.NDArray[np.bool_]


class _Norm(Structure):
    _fields_ = (("gain", c_void_p), ("bias", c_void_p), ("eps", c_float))


class _Layer(Structure):
    _fields_ = (("norms", _Norm * 3), ("matrices", Matrix * 7))


def _fields(kind: type, names: str) -> list[tuple[str, type]]:
    return [(name, kind) for name in names.split()]


class _Model(Structure):
    _fields_ = (
        *_fields(c_void_p, "encoder decoder"),
        *_fields(c_int64, "encoder_depth decoder_depth width heads key_heads key_width value_width inner_width"),
        *_fields(c_int32, "norms_first activation gated"),
        *_fields(_Norm, "encoder_norm decoder_norm"),
        *_fields(c_void_p, "source_words target_words"),
        ("scale", c_float),
        *_fields(c_void_p, "source_positions target_positions rotation"),
        ("projection", Matrix),
    )


class _Batch(Structure):
    _fields_ = (
        ("model", c_void_p),
        *_fields(c_int64, "threads sources"),
        *_fields(c_void_p, "offsets source_heads heads"),
        ("slots", c_int64),
        ("unused", c_void_p),
        ("unused_count", c_int64),
        ("marks", c_void_p),
        *_fields(c_int64, "rows length longest"),
        *_fields(c_void_p, "source_of_row next_source_of_row paths next_paths tokens parents"),
        *_fields(c_void_p, "stream normed projected attended hidden scores weights"),
        ("weight_room", c_int64),
        ("scratch", c_void_p),
    )


class _Choices(Structure):
    _fields_ = (
        *_fields(c_void_p, "open must_end"),
        ("rows_per_sentence", c_int64),
        ("never", c_int64 * 2),
        *_fields(c_int64, "end count"),
        *_fields(c_void_p, "highest tokens maxima"),
        ("best", c_int64),
        *_fields(c_void_p, "totals chosen parents"),
    )


def can_translate(model: TranslationModel) -> bool:
    """Return whether a `Translator` can be made of a model: if there is a compiler, of nearly all Transformers."""
    if not isinstance(model, Transformer) or not computes_in_c(torch.empty(0)):
        return False
    config, activation = model.config, activation_of(model.config)
    norm = model.encoder[0].attention_residual.norm if len(model.encoder) else None
    widths = config.d_model, config.key_size, config.value_size
    return (
        isinstance(norm, nn.LayerNorm | nn.RMSNorm)
        and activation.function in ACTIVATIONS
        and ":" not in config.positions
        and not model.positions.biases_scores
        and all(width % LANES == 0 for width in widths)
    )


class Translator:
    """A copy of a Transformer; later changes of the model do not affect it. Any number of threads may use it."""

    def __init__(self, model: TranslationModel, numbers: torch.dtype, longest: int) -> None:
        """Copy a model that `can_translate`.

        Args:
            model: the model.
            numbers: the type in which weights, and the rows that they multiply, are rounded for products.
            longest: no sentence has more tokens.
        """
        assert isinstance(model, Transformer)
        config, activation, vectors = model.config, activation_of(model.config), model.vectors
        self._numbers, self._kept = numbers, list[object]()
        self.row_bytes = 0
        self.key_value_numbers = config.key_value_heads * (config.key_size + config.value_size)
        self.words, pre = len(model.projection), config.norm_placement == "pre"
        encoder, decoder = ([self._layer(layer) for layer in layers] for layers in (model.encoder, model.decoder))
        self.projection = self._matrix(model.projection, vectors.bias)
        self.library = self.projection.library
        source_words = self._address(vectors.matrix("source"))
        rotation = model.positions.rotation(Places(torch.arange(longest), longest), torch.float32)
        self.struct = _Model(
            encoder=self._array(encoder), decoder=self._array(decoder),
            encoder_depth=len(encoder), decoder_depth=len(decoder), width=config.d_model, heads=config.heads,
            key_heads=config.key_value_heads, key_width=config.key_size, value_width=config.value_size,
            inner_width=config.d_ff, norms_first=pre, activation=ACTIVATIONS.index(activation.function),
            gated=activation.gated, encoder_norm=self._norm(model.encoder_norm) if pre else _Norm(),
            decoder_norm=self._norm(model.decoder_norm) if pre else _Norm(),
            source_words=source_words,
            target_words=source_words if vectors.tied else self._address(vectors.matrix("target")),
            scale=vectors.scale, source_positions=self._positions(model, "source", longest),
            target_positions=self._positions(model, "target", longest),
            rotation=None if rotation is None else self._address(rotation), projection=self.projection.structure,
        )  # fmt: skip
        inner = config.d_ff * (2 if activation.gated else 1)
        self.row_widths = {
            "stream": config.d_model,
            "normed": config.d_model,
            "projected": max(config.heads * config.key_size + self.key_value_numbers, inner),
            "attended": config.heads * config.value_size,
            "hidden": config.d_ff,
        }

    def _positions(self, model: Transformer, side: str, longest: int) -> int | None:
        """Return the address of what is added to the vectors of words at each position, if anything is."""
        learned = getattr(model, f"{side}_positions", None)
        count = longest if learned is None else len(learned)
        added = model.positions.add(
            torch.zeros(count, model.config.d_model), Places(torch.arange(count), count), learned
        )
        return self._address(added) if added.any() else None

    def _layer(self, layer: nn.Module) -> _Layer:
        assert isinstance(layer, EncoderLayer | DecoderLayer)
        attention, inner, outer = layer.attention, layer.feed_forward.inner, layer.feed_forward.outer
        residuals = [layer.attention_residual, layer.feed_forward_residual]
        products = [attention.query_key_value, attention.output, inner, outer]
        if isinstance(layer, DecoderLayer):
            residuals.append(layer.cross_attention_residual)
            cross = layer.cross_attention
            products += [cross.query, cross.output, cross.key_value]
        matrices = [self._matrix(each.weight, each.bias).structure for each in products]
        return _Layer((_Norm * 3)(*(self._norm(each.norm) for each in residuals)), (Matrix * 7)(*matrices))

    def _norm(self, norm: nn.Module) -> _Norm:
        norm = cast(nn.LayerNorm | nn.RMSNorm, norm)
        bias = norm.bias if isinstance(norm, nn.LayerNorm) else None
        eps = torch.finfo(torch.float32).eps if norm.eps is None else norm.eps
        return _Norm(self._address(norm.weight), None if bias is None else self._address(bias), eps)

    def _matrix(self, weight: Tensor, bias: Tensor | None) -> PackedMatrix:
        matrix = PackedMatrix(weight.detach().float(), None if bias is None else bias.detach().float(), self._numbers)
        self._kept.append(matrix)
        self.row_bytes = max(self.row_bytes, matrix.row_bytes)
        return matrix

    def _address(self, numbers: Tensor) -> int:
        numbers = numbers.detach().float().contiguous().clone()
        self._kept.append(numbers)
        return numbers.data_ptr()

    def _array(self, layers: Sequence[_Layer]) -> int:
        array = (_Layer * len(layers))(*layers)
        self._kept.append(array)
        return ctypes.addressof(array)


class Batch:
    """The hypotheses of some sentences: their sources, and the keys and values of their tokens so far.

    Each token of a hypothesis has a slot, and each row a list of the slots of its tokens, so choosing rows moves no
    keys and values. Slots that no row needs any more are taken again.
    """

    def __init__(
        self, translator: Translator, sources: Sequence[Sequence[int]], rows: int, longest: int, copies: int = 1
    ) -> None:
        """Read sentences of token ids.

        Args:
            translator: the model.
            sources: the sentences, each at least one token long.
            rows: no step has more rows.
            longest: no hypothesis has more tokens.
            copies: rows of each sentence in the first step.
        """
        self.translator, self.library = translator, translator.library
        lengths = [len(source) for source in sources]
        self.offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
        tokens, threads = np.concatenate(sources).astype(np.int64), torch.get_num_threads()
        self.struct = _Batch(model=ctypes.addressof(translator.struct), threads=threads, sources=len(sources))
        self._address, self._kept = ctypes.addressof(self.struct), dict[str, object]()
        self.heads = torch.empty(translator.struct.decoder_depth, 0, translator.key_value_numbers)
        source_heads = self.heads.new_empty(len(self.heads), len(tokens), translator.key_value_numbers)
        self._place(offsets=self.offsets, source_heads=source_heads)
        self._make_room(len(tokens), max(lengths))
        self._place(tokens=tokens, source_of_row=np.empty(len(tokens), np.int32))
        self.struct.rows = len(tokens)
        self.library.read_sources(self._address)
        self._tokens, self._parents = np.empty((2, rows), np.int64)
        sources_of_rows, paths = np.empty((2, rows), np.int32), np.empty((2, rows, longest), np.int32)
        sources_of_rows[0, : len(sources) * copies] = np.repeat(np.arange(len(sources)), copies)
        self._make_room(rows, max(longest, *lengths))
        self._place(source_of_row=sources_of_rows[0], next_source_of_row=sources_of_rows[1], paths=paths[0])
        self._place(next_paths=paths[1], tokens=self._tokens, parents=self._parents)
        self.struct.longest = longest
        self.choices: _Choices | None = None

    def scores(self, tokens: Tensor, parents: Tensor) -> Tensor:
        """Return the scores (R, V) of the tokens that follow `tokens` (R,), of which row r continues row parents[r]."""
        rows = self._begin(tokens.numpy(), parents.numpy())
        scores = torch.empty(rows, self.translator.words)
        self.library.score_step(self._address, rows, scores.data_ptr())
        return scores

    def choose(
        self, tokens: Ints, parents: Ints, open_: Floats, must_end: Flags, beam: int
    ) -> tuple[Floats, Ints, Ints]:
        """Add a token to each row, and return the 2 * `beam` most probable continuations of each sentence, best first.

        Args:
            tokens: (R,) the tokens.
            parents: (R,) the row of the last step that each row continues.
            open_: (S, K) the log-probabilities of the rows.
            must_end: (S,) whether only EOS may follow.
            beam: the number of continuations that may stay open.

        Returns:
            Log-probabilities, tokens and the rows that they continue, each (S, C): at most `beam` + 1 of each row. The
            next step uses their memory again.
        """
        rows = self._begin(tokens, parents)
        sentences, width = open_.shape
        choices = self.choices or self._prepare_choices(beam)
        best = min(2 * beam, width * (beam + 1))
        choices.rows_per_sentence, choices.best = width, best
        self._open[:rows] = open_.reshape(-1)
        self._must_end[:sentences] = must_end
        self.library.search_step(self._address, rows, ctypes.addressof(choices))
        found = sentences * best
        totals, chosen, from_rows = self._totals[:found], self._chosen[:found], self._rows[:found]
        shape = sentences, best
        return totals.reshape(shape), chosen.reshape(shape), from_rows.reshape(shape)

    def _begin(self, tokens: Ints, parents: Ints) -> int:
        """Place the input of a step, for which there are enough slots; return the number of rows."""
        rows = len(tokens)
        self._tokens[:rows], self._parents[:rows] = tokens, parents
        if self.struct.unused_count < rows:
            self.library.collect(self._address)
            if self.struct.unused_count < rows:
                self._add_slots(max(FIRST_SLOTS * len(self._tokens), self.heads.shape[1]))
        return rows

    def _add_slots(self, count: int) -> None:
        self.heads = F.pad(self.heads, (0, 0, 0, count))
        self.struct.slots = slots = self.heads.shape[1]
        self._place(heads=self.heads, unused=np.empty(slots, np.int32), marks=np.empty(slots, np.bool_))
        self.library.collect(self._address)

    def _prepare_choices(self, beam: int) -> _Choices:
        rows, threads, words = len(self._tokens), self.struct.threads, self.translator.words
        self._open, self._must_end = np.empty(rows, np.float32), np.empty(rows, np.bool_)
        self._maxima = np.empty((threads, -(-words // PIECE)), np.float32)
        self._highest, self._totals = np.empty((2, rows * (beam + 1)), np.float32)
        self._row_tokens, self._chosen, self._rows = np.empty((3, rows * (beam + 1)), np.int64)
        self._place(scores=torch.empty(min(rows, BLOCK_ROWS), words))
        self.choices = _Choices(
            open=_address(self._open), must_end=_address(self._must_end), never=(c_int64 * 2)(PAD, BOS), end=EOS,
            count=beam + 1, highest=_address(self._highest), tokens=_address(self._row_tokens),
            maxima=_address(self._maxima), totals=_address(self._totals), chosen=_address(self._chosen),
            parents=_address(self._rows),
        )  # fmt: skip
        return self.choices

    def _make_room(self, rows: int, keys: int) -> None:
        """Make room for the rows of a call that attend to at most this many keys."""
        widths, threads = self.translator.row_widths, self.struct.threads
        self.struct.weight_room = -(-keys // LANES) * LANES
        self._place(**{name: torch.empty(rows, width) for name, width in widths.items()})
        scratch = scratch_for(self.translator.row_bytes, rows)
        self._place(weights=torch.empty(threads, self.struct.weight_room), scratch=scratch)

    def _place(self, **arrays: "Tensor | npt.NDArray[np.generic]") -> None:
        """Let the C code find arrays, and keep them as long as it does not get others by the same names."""
        for name, each in arrays.items():
            setattr(self.struct, name, each.data_ptr() if isinstance(each, Tensor) else _address(each))
            self._kept[name] = each


def _address(array: npt.NDArray[np.generic]) -> int:
    address: int = array.__array_interface__["data"][0]  # a tenth of the time of `array.ctypes.data`
    return address
