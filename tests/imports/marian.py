"""Make Marian models as transformers saves them, with random weights and tiny tokenizers."""

import io
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
import sentencepiece
import torch

SOURCE = ["the small cat sees a dog", "a dog and the cat", "it is not a small dog that sees it", "cats see dogs"] * 5
TARGET = ["die kleine Katze sieht einen Hund", "ein Hund und die Katze", "Katzen sehen Hunde, nicht klein"] * 5
STEPS = 150
"""Steps of training: random weights repeat one piece up to the limit, where the two searches end differently."""
LACKING = 3
"""Pieces of each side that the vocabulary lacks."""


def lines(count: int = 100) -> list[str]:
    """Return made-up source sentences; some have characters that no tokenizer knows."""
    generator = np.random.default_rng(3)
    words = sorted({word for line in SOURCE for word in line.split()} | {"ß", "x y"})
    return [" ".join(generator.choice(words, generator.integers(1, 6))) for _ in range(count)]


def pieces(text: list[str], kind: str, size: int = 60) -> bytes:
    content = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(text), model_writer=content, model_type=kind, vocab_size=size, minloglevel=2,
        hard_vocab_limit=False,
    )  # fmt: skip
    return content.getvalue()


def vocabulary(models: list[bytes], *, shared: bool) -> dict[str, int]:
    """Return a vocabulary as Marian makes it: end mark, unknown piece, pieces, padding, which is last if shared."""
    texts = ["</s>", "<unk>"] if shared else ["</s>", "<unk>", "<pad>"]
    for model in models:
        library = sentencepiece.SentencePieceProcessor(model_proto=model)
        own = [library.id_to_piece(index) for index in range(3, library.get_piece_size())]
        texts += own[:-LACKING]
    return {text: index for index, text in enumerate(dict.fromkeys([*texts, "<pad>"]))}


def make(folder: Path, kind: str, *, shared: bool, **changes: Any) -> None:
    """Write a model and its tokenizer; a test that asks for them is skipped without the library."""
    pytest.importorskip("transformers", reason="needs the extra huggingface")
    for name, content in _made(kind, shared, tuple(changes.items())).items():
        (folder / name).write_bytes(content)


@cache
def _made(kind: str, shared: bool, changes: tuple[tuple[str, Any], ...]) -> dict[str, bytes]:
    """Return the files of a model, which takes seconds to train."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        _train_and_save(folder, kind, shared, dict(changes))
        return {file.name: file.read_bytes() for file in folder.iterdir()}


def _train_and_save(folder: Path, kind: str, shared: bool, changes: Mapping[str, Any]) -> None:
    import transformers

    models = [pieces(SOURCE, kind), pieces(TARGET, kind, 50)]
    if shared and kind == "bpe":  # text would be merged into pieces of the other language
        models = [pieces(SOURCE + TARGET, kind, 90)] * 2
    vocabularies = (
        [vocabulary(models, shared=True)] if shared else [vocabulary([each], shared=False) for each in models]
    )
    for name, content in zip(("source.spm", "target.spm"), models, strict=True):
        (folder / name).write_bytes(content)
    for name, content_json in zip(("vocab.json", "target_vocab.json"), vocabularies, strict=False):
        (folder / name).write_text(json.dumps(content_json), encoding="utf-8")
    tokenizer = {"source_lang": "en", "target_lang": "de", "separate_vocabs": not shared}
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer | {"tokenizer_class": "MarianTokenizer"}))
    pad = vocabularies[-1]["<pad>"]
    settings = {
        "vocab_size": len(vocabularies[0]), "decoder_vocab_size": len(vocabularies[-1]), "d_model": 32,
        "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
        "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "activation_function": "swish", "scale_embedding": True,
        "pad_token_id": pad, "decoder_start_token_id": pad, "eos_token_id": 0, "forced_eos_token_id": 0,
        "share_encoder_decoder_embeddings": shared, "tie_word_embeddings": shared, "max_position_embeddings": 128,
        "static_position_embeddings": True,
    }  # fmt: skip
    torch.manual_seed(5)
    model = transformers.MarianMTModel(transformers.MarianConfig(**{**settings, **changes})).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.dim() == 1:
                weight.normal_(mean=float(name.endswith("norm.weight")), std=0.05)
        model.final_logits_bias.normal_(std=0.5)
    _train(model, transformers.MarianTokenizer.from_pretrained(folder))
    model.generation_config.bad_words_ids = [[pad]]
    model.save_pretrained(folder)


def _train(model: Any, tokenizer: Any) -> None:
    """Train a model a little on a made-up translation: each word becomes the German word at the same place."""
    generator, optimizer = np.random.default_rng(4), torch.optim.Adam(model.parameters(), lr=4e-3)
    sources = sorted({word for line in SOURCE for word in line.split()})
    targets = [word for line in TARGET for word in line.split()]
    for _ in range(STEPS):
        chosen = [generator.integers(0, len(sources), generator.integers(1, 9)) for _ in range(16)]
        batch = tokenizer(
            [" ".join(sources[index] for index in each) for each in chosen],
            text_target=[" ".join(targets[index] for index in each) for each in chosen],
            return_tensors="pt", padding=True,
        )  # fmt: skip
        batch["labels"][batch["labels"] == tokenizer.pad_token_id] = -100
        model(**batch).loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def generate(folder: Path, sentences: list[str], beam: int, longest: int) -> list[str]:
    """Return the translations of transformers."""
    import transformers

    model = transformers.MarianMTModel.from_pretrained(folder).eval()
    tokenizer = transformers.MarianTokenizer.from_pretrained(folder)
    search: dict[str, Any] = {"num_beams": beam, "do_sample": False, "max_length": longest + 1}
    search |= {"length_penalty": 0.0, "early_stopping": False} if beam > 1 else {}
    with torch.no_grad():
        rows = model.generate(**tokenizer(sentences, return_tensors="pt", padding=True), **search)
    found: list[str] = tokenizer.batch_decode(rows, skip_special_tokens=True)
    return found
