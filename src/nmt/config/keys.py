"""The dotted keys of all settings, read from the fields of the schema and the docstrings under them."""

import ast
import inspect
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from difflib import get_close_matches
from functools import cache, reduce
from hashlib import sha256
from typing import Any, TypeVar

from nmt.config import registry
from nmt.config.checks import ADJUSTABLE, IN_WORDS, MAX_NAME_CHARACTERS, Group, base_type
from nmt.config.conf_folder import groups
from nmt.config.tree import Config

AnyGroup = TypeVar("AnyGroup", bound=Group)

ELSEWHERE = {
    "averaging.last": "average_checkpoints",
    "data.max_pieces": "max_length max_seq_length",
    "data.source_lang": "source_lang src src_lang",
    "data.target_lang": "target_lang tgt tgt_lang",
    "data.train": "train_file",
    "data.valid": "validation_file",
    "decoding.alpha": "length_penalty lenpen",
    "decoding.beam": "beam_size beam_width num_beams",
    "decoding.nbest": "num_return_sequences",
    "model.d_ff": "d_hidden encoder_ffn_dim decoder_ffn_dim ffn_dim",
    "model.d_model": "embed_dim encoder_embed_dim hidden_size",
    "model.dropout": "dropout",
    "model.heads": "attention_heads encoder_attention_heads decoder_attention_heads heads n_head num_heads",
    "model.layers": "n_layer num_layers",
    "paths.outputs": "output_dir save_dir",
    "runtime.device": "device",
    "runtime.precision": "amp bf16 fp16 mixed_precision precision",
    "runtime.workers": "num_workers",
    "tokenizer.vocab_size": "vocab vocab_size",
    "tracking.wandb": "report_to wandb",
    "training.adam_beta1": "adam_betas beta1 betas",
    "training.adam_beta2": "beta2",
    "training.adam_eps": "adam_epsilon",
    "training.batch_tokens": "accumulate_grad_batches batch_size gradient_accumulation_steps update_freq",
    "training.clip_norm": "clip gradient_clip_val max_grad_norm",
    "training.device_tokens": "max_tokens per_device_train_batch_size",
    "training.ema": "ema_decay",
    "training.init_from": "finetune_from_model pretrained",
    "training.keep_last": "keep_last_epochs save_total_limit",
    "training.learning_rate": "lr",
    "training.log_every": "log_interval logging_steps",
    "training.patience": "early_stopping patience",
    "training.save_every": "save_interval save_steps",
    "training.schedule": "lr_scheduler lr_scheduler_type scheduler",
    "training.steps": "epochs max_epochs max_steps max_update max_updates num_epochs num_train_epochs train_steps",
    "training.valid_every": "eval_steps val_check_interval",
    "training.warmup_steps": "warmup warmup_updates",
}
"""What fairseq, Hugging Face, OpenNMT, Lightning and others call a setting. Some have another unit: tokens for
sentences, steps for epochs; accumulation follows from the tokens of a batch and of a device."""
_OURS = {word: name for name, words in ELSEWHERE.items() for word in words.split()}
_DIGEST_CHARACTERS = 8
_SIMILARITY = 0.75
"""The lowest similarity at which an error message suggests a key."""


@dataclass(frozen=True, slots=True)
class Key:
    """One setting."""

    name: str
    kind: Any
    """The Python type of its values."""
    default: Any
    meaning: str
    adjustable: bool
    """True if the setting may change when a run is resumed."""

    @property
    def type(self) -> str:
        """The type as the help names it."""
        return str(self.kind) if hasattr(self.kind, "__args__") else self.kind.__name__

    @property
    def in_words(self) -> str:
        """The type in words, for an error message."""
        return IN_WORDS[self.kind]


@cache
def all_keys() -> dict[str, Key]:
    """Return every setting by its dotted name, in the order of the tree."""
    return {key.name: key for key in _walk(Config(), "", adjustable=False)}


@cache
def open_keys() -> tuple[str, ...]:
    """Return the settings that contain others, under names that the user chooses."""
    return tuple(name for name, key in all_keys().items() if key.type.startswith("dict"))


def describe_keys(prefix: str) -> list[Key]:
    """Return the settings of a group (`training`), or the single setting of exactly this name."""
    return [key for name, key in all_keys().items() if name == prefix or name.startswith(prefix + ".")]


def value_of(config: Config, name: str) -> Any:
    """Return the value of a setting by its dotted name."""
    return reduce(getattr, name.split("."), config)


def written(value: object) -> str:
    """Return a value as it is written on the command line."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case list():
            return f"[{','.join(map(str, value))}]"
        case _:
            return str(value)


def settings_name(values: Mapping[str, object]) -> str:
    """Return settings as a name such as model.dropout_0.1-training.steps_500, sorted by key."""
    return plain_name("-".join(f"{key}_{written(value)}" for key, value in sorted(values.items())))


def plain_name(text: str, limit: int = MAX_NAME_CHARACTERS) -> str:
    """Return a text as a name of a folder that needs no quotes on the command line, so it has no = and no commas.

    A name with other characters, or of more than `limit`, ends with a digest, so that other texts have other names.
    """
    plain = re.sub(r"[^A-Za-z0-9._+-]", "_", text)
    if plain == text and len(text) <= limit:
        return text
    digest = sha256(text.encode()).hexdigest()[:_DIGEST_CHARACTERS]
    return f"{plain[: max(0, limit - len(digest) - 1)]}-{digest}".lstrip("-")


def with_values(settings: AnyGroup, values: Mapping[str, Any]) -> AnyGroup:
    """Return settings with other values for some, by their dotted names; check them like all settings.

    A group changes at once: settings are checked against each other, so one of several may not fit without others.
    """
    changes: dict[str, Any] = {}
    groups: dict[str, dict[str, Any]] = {}
    for path, value in values.items():
        name, dot, rest = path.partition(".")
        if dot:
            groups.setdefault(name, {})[rest] = value
        else:
            changes[name] = value
    changes |= {name: with_values(getattr(settings, name), inner) for name, inner in groups.items()}
    return replace(settings, **changes)


def unknown_setting(key: str) -> str:
    """Return the message for a key that does not exist, with the key that the user probably meant."""
    if members := [name for name in all_keys() if name.startswith(key + ".")]:
        hint = f"it is a group of settings: set {members[0]} or another of them"
    else:
        hint = _nearest_key(key, [*all_keys(), *(() if "." in key else groups())])
    return f"there is no setting {key}; {hint}"


def _nearest_key(wrong: str, known: Sequence[str]) -> str:
    """Return the name here of what others call so, or the most similar key."""
    last = wrong.rpartition(".")[2].lower().replace("-", "_")
    if ours := _OURS.get(last):
        meaning = all_keys()[ours].meaning.partition(". ")[0].rstrip(".")
        return f"it is {ours} here: {meaning[0].lower()}{meaning[1:]}"
    by_last = {key.rpartition(".")[2]: key for key in reversed(known)}
    same_group = [key for key in known if key.rpartition(".")[0] == wrong.rpartition(".")[0]]
    close = (
        get_close_matches(wrong, same_group, n=1, cutoff=_SIMILARITY)
        or get_close_matches(wrong, known, n=1, cutoff=_SIMILARITY)
        or [by_last[word] for word in get_close_matches(last, by_last, n=1, cutoff=_SIMILARITY)]
    )
    return f"did you mean {close[0]}?" if close else "`nmt COMMAND --help=all` lists the settings"


def _walk(settings: Any, prefix: str, *, adjustable: bool) -> Iterator[Key]:
    """Yield the settings of a group and of the groups in it; a group that is adjustable makes all of them so."""
    meanings = _docstrings(type(settings))
    for field in fields(settings):
        value, name = getattr(settings, field.name), prefix + field.name
        may_change = adjustable or bool(field.metadata.keys() & ADJUSTABLE.keys())
        if is_dataclass(value):
            yield from _walk(value, name + ".", adjustable=may_change)
        else:
            meaning, listed = meanings.get(field.name, ""), registry.describe(name)
            meaning = f"{meaning.rstrip('.')}: {listed}." if listed else meaning
            yield Key(name, base_type(field.type), value, meaning, may_change)


def _docstrings(settings: type) -> dict[str, str]:
    """Return the docstrings under the fields of a class, which Python itself discards."""
    found = {}
    for node in _module_tree(settings.__module__).body:
        if isinstance(node, ast.ClassDef) and node.name == settings.__name__:
            for above, below in zip(node.body, node.body[1:], strict=False):
                match above, below:
                    case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                        found[name] = inspect.cleandoc(text)
    return found


@cache
def _module_tree(module: str) -> ast.Module:
    return ast.parse(inspect.getsource(sys.modules[module]))
