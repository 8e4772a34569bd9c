"""The sentences that a `Translator` translates together: a step is one call of `transformer.c` for all hypotheses.

Shapes: S sentences of a batch, R rows (hypotheses) of a step, K rows per sentence, V words of the target vocabulary,
C continuations of a sentence.
"""

import ctypes
from collections.abc import Sequence
from ctypes import Structure, c_int64, c_void_p

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional as F

from nmt.model.kernels.c.library import LANES
from nmt.model.kernels.c.products import scratch_for
from nmt.model.translator import Translator, fields_of
from nmt.text.special import BOS, EOS, PAD

BLOCK_ROWS = 96
"""Rows whose scores are in memory at a time when continuations are chosen."""
PIECE = 64
"""Scores of a row whose maximum is remembered."""
FIRST_SLOTS = 24
"""Slots of the cache that are allocated per row at first."""

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]
Flags = npt.NDArray[np.bool_]


class _Batch(Structure):
    _fields_ = (
        ("model", c_void_p),
        *fields_of(c_int64, "threads sources"),
        *fields_of(c_void_p, "offsets source_heads heads"),
        ("slots", c_int64),
        ("unused", c_void_p),
        ("unused_count", c_int64),
        ("marks", c_void_p),
        *fields_of(c_int64, "rows length longest"),
        *fields_of(c_void_p, "source_of_row next_source_of_row paths next_paths tokens parents"),
        *fields_of(c_void_p, "stream normed projected attended hidden scores weights"),
        ("weight_room", c_int64),
        ("scratch", c_void_p),
    )


class _Choices(Structure):
    _fields_ = (
        *fields_of(c_void_p, "open must_end"),
        ("rows_per_sentence", c_int64),
        ("never", c_int64 * 2),
        *fields_of(c_int64, "end count"),
        *fields_of(c_void_p, "highest tokens maxima"),
        ("best", c_int64),
        *fields_of(c_void_p, "totals chosen parents"),
    )


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
        scratch = scratch_for(rows, max(widths.values()))
        self._place(weights=torch.empty(threads, self.struct.weight_room), scratch=scratch)

    def _place(self, **arrays: "Tensor | npt.NDArray[np.generic]") -> None:
        """Let the C code find arrays, and keep them as long as it does not get others by the same names."""
        for name, each in arrays.items():
            setattr(self.struct, name, each.data_ptr() if isinstance(each, Tensor) else _address(each))
            self._kept[name] = each


def _address(array: npt.NDArray[np.generic]) -> int:
    address: int = array.__array_interface__["data"][0]  # a tenth of the time of `array.ctypes.data`
    return address
