"""Exports for `MarianMTModel` and `AutoTokenizer`, compared with our own model and tokenizer."""

from pathlib import Path

import pytest
import torch

from nmt.config.schema import DecodingConfig
from nmt.decoding.torch_engine import TorchEngine
from nmt.errors import UserError
from nmt.features.exports import huggingface
from nmt.features.exports.marian_engine import MarianEngine
from nmt.text.special import BOS, EOS, PAD, UNK
from tests.unit.small_models import LINES, log_probabilities, make_model, make_tokenizer

GREEDY = DecodingConfig(beam=1, extra_length=10)


SHAPES = [
    {},
    {"tie_embeddings": False},
    {"activation": "gelu"},
    {"activation": "swish"},
    {"heads": 1},
    {"encoder_layers": 3},
    {"output_bias": True},
]


@pytest.mark.parametrize("options", SHAPES, ids=str)
def test_hugging_face_gives_the_same_scores_and_translations(tmp_path: Path, options: dict[str, object]) -> None:
    transformers = pytest.importorskip("transformers", reason="needs the extra huggingface")
    tokenizer = make_tokenizer(joint=options.get("tie_embeddings") is not False)
    ours = make_model(tokenizer, **options)
    huggingface.write(tmp_path, ours.config, ours.state_dict(), tokenizer, ("en", "de"), {"max_length": 64})
    theirs = transformers.MarianMTModel.from_pretrained(tmp_path).eval()
    sources, targets = tokenizer.encode_source(LINES), tokenizer.encode_target(LINES[::-1])
    for source, target in zip(sources, targets, strict=True):
        ids, begun = torch.tensor([[*source, EOS]]), torch.tensor([[BOS, *target]])
        with torch.no_grad():
            logits = theirs(input_ids=ids, decoder_input_ids=begun).logits[0]
        found = logits.log_softmax(-1).gather(1, torch.tensor([*target, EOS])[:, None])[:, 0]
        torch.testing.assert_close(found, log_probabilities(ours, source, target), atol=1e-4, rtol=1e-4)
        generated = theirs.generate(input_ids=ids, num_beams=1, do_sample=False, max_new_tokens=len(source) + 11)[0]
        ((greedy,),) = TorchEngine([ours], tokenizer, GREEDY, torch.device("cpu")).translate_ids([source])
        kept = [piece for piece in generated.tolist() if piece not in (PAD, BOS, EOS)]
        assert kept[: len(source) + 10] == greedy.tokens


@pytest.mark.parametrize("beam", [1, 4])
def test_generation_config_searches_as_our_search_without_a_length_penalty(tmp_path: Path, beam: int) -> None:
    pytest.importorskip("transformers", reason="needs the extra huggingface")
    tokenizer = make_tokenizer()
    longest = 25
    ours = make_model(tokenizer)
    search = huggingface.generation(beam, longest)
    huggingface.write(tmp_path, ours.config, ours.state_dict(), tokenizer, ("en", "de"), search)
    decoding = DecodingConfig(beam=beam, alpha=0.0, extra_length=longest)
    native = TorchEngine([ours], tokenizer, decoding, torch.device("cpu"))
    native.max_target_tokens = longest
    sources = tokenizer.encode_source(LINES)
    expected = [best.tokens for best, *_ in native.translate_ids(sources)]
    found = MarianEngine(tmp_path, tokenizer, decoding).translate_ids(sources)
    assert [best.tokens for best, *_ in found] == expected


@pytest.mark.parametrize("joint", [True, False])
def test_autotokenizer_splits_and_joins_as_our_tokenizer(tmp_path: Path, joint: bool) -> None:
    transformers = pytest.importorskip("transformers", reason="needs the extra huggingface")
    tokenizer = make_tokenizer(joint)
    ours = make_model(tokenizer, tie_embeddings=joint)
    huggingface.write(tmp_path, ours.config, ours.state_dict(), tokenizer, ("en", "de"), {})
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    for line in [*LINES, "what is not in it: ßé"]:
        (source,), (target,) = tokenizer.encode_source([line]), tokenizer.encode_target([line])
        assert theirs(line).input_ids == [*source, EOS]
        assert theirs(text_target=line).input_ids == [*target, EOS]
        known = [piece for piece in target if piece != UNK]  # Hugging Face leaves the others out
        assert theirs.decode([BOS, *known, EOS], skip_special_tokens=True) == tokenizer.decode(known).strip()


def test_text_that_autotokenizer_takes_for_a_token_is_in_the_card(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="needs the extra huggingface")
    tokenizer = make_tokenizer()
    ours = make_model(tokenizer)
    huggingface.write(tmp_path, ours.config, ours.state_dict(), tokenizer, ("en", "de"), {})
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    note = huggingface.HuggingFaceExporter().search_note(DecodingConfig())
    for text in ("</s>", ">>de<<"):
        (ids,) = tokenizer.encode_source([f"{text} a dog"])
        assert theirs(f"{text} a dog").input_ids != [*ids, EOS]
        assert f"`{text}`" in note


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("positions", "learned"),
        ("positions", "rotary"),
        ("norm", "rms"),
        ("norm_placement", "pre"),
        ("activation", "swiglu"),
        ("d_k", 16),
        ("d_v", 16),
        ("kv_heads", 2),
    ],
)
def test_settings_that_marian_cannot_express_are_refused_by_name(tmp_path: Path, option: str, value: object) -> None:
    tokenizer = make_tokenizer()
    ours = make_model(tokenizer, **{option: value})
    with pytest.raises(UserError, match=f"export.target=huggingface cannot express model.{option}={value}, only"):
        huggingface.write(tmp_path, ours.config, ours.state_dict(), tokenizer, ("en", "de"), {})
    assert not list(tmp_path.iterdir())
