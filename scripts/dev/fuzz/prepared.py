"""Targets: damaged or forged files of prepared data, checkpoints and tokenizers."""

import io
import json
import os
import shutil
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import sentencepiece
import torch
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from fuzz.campaign import Attempt
from fuzz.strategies import altered, damaged, lines
from nmt.config.data import DataConfig, TokenizerConfig
from nmt.config.decoding import DecodingConfig
from nmt.config.model import ModelConfig
from nmt.config.saved import from_yaml, to_yaml
from nmt.config.tree import Config, PathsConfig, RuntimeConfig
from nmt.data.layout import MANIFEST
from nmt.data.manifest import PreparationTasks, read_manifest
from nmt.data.prepared import require_prepared
from nmt.data.store import PairStore, writing
from nmt.decoding.torch_engine import load_model
from nmt.model.build import build_model
from nmt.runs.checkpoint_files import write
from nmt.runs.checkpoints import load, load_last_good, resolve
from nmt.runs.layout import META, TRAINER, WEIGHTS
from nmt.text.special import BOS, EOS, PAD, UNK
from nmt.text.tokenizer import Tokenizer

Files = dict[str, bytes]


def store(folder: Path) -> Attempt:
    """Try the arrays of a split and their description: a store that passes verification has valid sentences."""
    ids, lengths = np.arange(40) % 9 + 4, np.array([5, 0, 15, 20], np.int32)
    with writing(folder, "train", ("en", "de"), 60) as writer:
        writer.append(ids.astype("<u2"), lengths, ids[::-1].astype("<u2"), lengths)
    whole = contents(folder)

    def check(files: Files) -> None:
        write_only(folder, files)
        opened = PairStore.open(folder, "train")
        opened.verify()
        assert len(opened.source_lengths) == len(opened.target_lengths) == len(opened)
        assert min(*opened.source_lengths, *opened.target_lengths) >= 0
        for index in range(len(opened)):
            assert len(opened.source(index)) == opened.source_lengths[index]
            assert opened.target(index).dtype.kind == "u"

    forged = altered(json.loads(whole["train.store.json"])).map(
        lambda value: whole | {"train.store.json": _json(value)}
    )
    return Attempt(damages(whole) | forged | _sealed_stores(whole), check)


def _sealed_stores(whole: Files) -> SearchStrategy[Files]:
    """Return damaged arrays with matching checksums and sizes."""

    def seal(files: Files) -> Files:
        described = json.loads(whole["train.store.json"])
        for name, content in files.items():
            described["files"][name] |= {"bytes": len(content), "sha256": sha256(content).hexdigest()}
        return files | {"train.store.json": _json(described)}

    return damages({name: content for name, content in whole.items() if name != "train.store.json"}).map(seal)


def manifest(folder: Path) -> Attempt:
    """Try manifests, which name the files to remove: files elsewhere must not be changed."""
    config = Config(data=DataConfig(corpus="data"), paths=PathsConfig(data=str(folder)))
    config.data_folder.mkdir()
    names = [f"{task} {split}" for split in ("test", "valid", "train") for task in ("collect", "encode")]
    tasks = PreparationTasks(config.data_folder, {}, lambda _: None)
    for name in ("tokenizer", *names):
        (config.data_folder / name).write_text("text")
        tasks.run(name, {"settings": {}}, [name], dict)
    whole = contents(config.data_folder)
    victim = folder.with_name("victim")
    victim.write_text("not to be touched")

    def write() -> dict[str, Any]:
        (config.data_folder / "tokenizer").write_text("text")
        return {}

    def check(files: Files) -> None:
        write_only(config.data_folder, files)
        read_manifest(config.data_folder)
        again = PreparationTasks(config.data_folder, {}, lambda _: None)
        again.run("tokenizer", {"settings": {"new": 1}}, ["tokenizer"], write)
        again.outputs("tokenizer")
        again.finish(["tokenizer"])
        require_prepared(config)

    def evil(place: str) -> Files:
        content = json.loads(whole[MANIFEST])
        content["steps"]["collect old"] = {"inputs": {}, "outputs": {place: ""}, "result": {}, "seconds": 0}
        return whole | {MANIFEST: _json(content)}

    places = st.sampled_from([str(victim), "../../victim", "a/../../../victim", "..", ".", "", "\0"])
    forged = altered(json.loads(whole[MANIFEST])).map(lambda value: whole | {MANIFEST: _json(value)})
    return Attempt(damages(whole) | forged | places.map(evil), check)


def tokenizer(folder: Path) -> Attempt:
    """Try SentencePiece models: damaged ones are refused, or still encode and decode."""
    models = [tiny_tokenizer("bpe"), tiny_tokenizer("unigram", normalization_rule_name="nmt_nfkc")]

    def check(value: tuple[list[bytes], list[str]]) -> None:
        models_, text = value
        names = ["tokenizer.model"] if len(models_) == 1 else ["tokenizer.source.model", "tokenizer.target.model"]
        write_only(folder, dict(zip(names, models_, strict=True)))
        loaded = Tokenizer.load(folder)
        for ids, size in (
            (loaded.encode_source(text), loaded.source_size),
            (loaded.encode_target(text), loaded.target_size),
        ):
            assert len(ids) == len(text)
            assert all(0 <= piece < size for line in ids for piece in line)
        for line in loaded.encode_target(text):
            loaded.decode(line).encode()
        assert loaded.vocabularies

    one = st.sampled_from(models).flatmap(damaged) | st.sampled_from(models)
    return Attempt(st.tuples(st.lists(one, min_size=1, max_size=2), lines()), check)


def checkpoint(folder: Path) -> Attempt:
    """Try checkpoints: damage is detected, forgeries run no code, and a model that loads can translate."""
    config = tiny_run(folder)
    home = resolve(config.run_folder, "last")
    whole = contents(home)
    other = {
        TRAINER: Evil.file(folder.with_name("victim")),
        WEIGHTS: whole["tokenizer.model"],
        "config.yaml": b"[" * 5000,
    }

    def check(files: Files) -> None:
        write_only(home, files)
        unsealed = files.get(META) == whole[META]
        loaded = load(resolve(config.run_folder, "last"), trainer=True)
        if unsealed:
            assert {name: files[name] for name in loaded.meta.files} == {
                name: whole[name] for name in loaded.meta.files
            }
        assert isinstance(loaded.trainer, dict)
        load_model(loaded, from_yaml(loaded.config_text).model, torch.device("cpu"))
        assert load_last_good(config.run_folder) is not None

    swapped = st.permutations(sorted(whole)).map(
        lambda names: dict(zip(sorted(whole), map(whole.__getitem__, names), strict=True))
    )
    forged = (
        damages(whole) | st.sampled_from(sorted(other)).map(lambda name: whole | {name: other[name]}) | _settings(whole)
    )
    meta = altered(json.loads(whole[META])).map(lambda value: whole | {META: sealed(value)})
    return Attempt(damages(whole) | swapped | forged.map(_seal_checkpoint) | meta, check)


class Evil:
    """Creates a folder when it is unpickled, as code from a file could."""

    def __init__(self, victim: Path) -> None:
        self.victim = victim

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Return the function that pickle calls, and its arguments."""
        return os.mkdir, (str(self.victim),)

    @classmethod
    def file(cls, victim: Path) -> bytes:
        """Return this object as saved by torch.save."""
        content = io.BytesIO()
        torch.save({"trainer": cls(victim)}, content)
        return content.getvalue()


def tiny_tokenizer(kind: str = "bpe", **more: Any) -> bytes:
    """Return a SentencePiece model of few pieces."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["the small cat sees a dog", "die kleine Katze sieht einen Hund"] * 9),
        model_writer=model,
        model_type=kind,
        vocab_size=40,
        hard_vocab_limit=False,
        unk_id=UNK,
        pad_id=PAD,
        bos_id=BOS,
        eos_id=EOS,
        num_threads=1,
        minloglevel=3,
        **more,
    )
    return model.getvalue()


def tiny_run(folder: Path) -> Config:
    """Create a run with one checkpoint in `folder`; return its settings."""
    model = Tokenizer(tiny_tokenizer())
    config = Config(
        name="tiny",
        checkpoint="last",
        data=DataConfig(corpus="tiny"),
        tokenizer=TokenizerConfig(vocab_size=model.source_size),
        model=ModelConfig(layers=1, d_model=8, d_ff=8, heads=2),
        decoding=DecodingConfig(extra_length=3, beam=2, batch_tokens=512),
        runtime=RuntimeConfig(device="cpu", precision="fp32", threads=1),
        paths=PathsConfig(data=str(folder / "data"), outputs=str(folder / "outputs")),
    )
    model.save(config.data_folder)
    transformer = build_model(config.model, model.source_size, model.target_size)
    write(
        config.run_folder / "checkpoints" / "step-00000007",
        step=7,
        weights=transformer.state_dict(),
        trainer={"loop": {"stale": 0}, "data": "", "trainer": {"moments": torch.zeros(3)}},
        tokenizer_files=model.files,
        config_text=to_yaml(config),
        valid={"loss": 1.0},
        best_by="loss",
    )
    return config


def _settings(whole: Files) -> SearchStrategy[Files]:
    """Return settings of other models than that of the weights, some too large for any machine."""
    config = from_yaml(whole["config.yaml"].decode())
    sizes = st.sampled_from([1, 2, 3, 8, 64, 10**6, 10**12, 10**18])
    models = st.dictionaries(
        st.sampled_from(["layers", "d_model", "d_ff", "heads", "d_k", "max_positions"]), sizes, min_size=1
    )

    def described(changes: dict[str, int]) -> Files:
        text = to_yaml(config)
        for key, value in changes.items():
            text = "\n".join(
                f"  {key}: {value}" if line.startswith(f"  {key}:") else line for line in text.splitlines()
            )
        return whole | {"config.yaml": text.encode()}

    return models.map(described)


def _seal_checkpoint(files: Files) -> Files:
    """Write matching checksums into the meta.json, as an attacker would."""
    try:
        meta = json.loads(files[META])
        meta["files"] = {name: sha256(content).hexdigest() for name, content in files.items() if name != META}
    except (KeyError, TypeError, ValueError):
        return files
    return files | {META: sealed(meta)}


def sealed(meta: Any) -> bytes:
    """Return a meta.json with a valid seal."""
    if not isinstance(meta, dict):
        return _json(meta)
    meta = {key: value for key, value in meta.items() if key != "seal"}
    return _json(meta | {"seal": sha256(json.dumps(meta, sort_keys=True).encode()).hexdigest()})


def damages(whole: Files) -> SearchStrategy[Files]:
    """Return a strategy in which one file is damaged, replaced by another, or missing."""

    def of(name: str) -> SearchStrategy[Files]:
        content = damaged(whole[name]) | st.sampled_from(sorted(whole)).map(whole.__getitem__)
        lost = st.just({key: value for key, value in whole.items() if key != name})
        return content.map(lambda changed: whole | {name: changed}) | lost

    return st.sampled_from(sorted(whole)).flatmap(of)


def contents(folder: Path) -> Files:
    """Return the files of a folder by name."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def write_only(folder: Path, files: Files) -> None:
    """Write these files to a folder and remove all others."""
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    for name, content in files.items():
        (folder / name).write_bytes(content)


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()
