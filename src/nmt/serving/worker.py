"""What the process of a model does: it loads the model, and answers one batch after the other."""

import os
from collections.abc import Sequence
from itertools import repeat

import torch
from starlette.exceptions import HTTPException

from nmt.compute.machine import free_cached_memory, is_out_of_memory, prepare_machine
from nmt.config.tree import Config
from nmt.decoding.attention import ATTENTION_TOKENS, word_attention
from nmt.decoding.batches import batches_by_length
from nmt.decoding.load import LoadedModel, load, load_engine
from nmt.decoding.torch_engine import TorchEngine
from nmt.decoding.translation import Candidate, Request, word_probabilities
from nmt.errors import ConfigError, UserError
from nmt.serving.messages import Answer, ModelFacts, Task, report_error
from nmt.text.special import BOS, EOS
from nmt.text.words import match_words


def load_model(config: Config, folder: str) -> LoadedModel:
    """Load the model in a folder, or without one that which the settings choose."""
    runtime = config.runtime
    if not folder:
        return load_engine(config, prepare_machine(runtime))
    return load(
        folder, device=runtime.device, precision=runtime.precision, threads=runtime.threads, kernels=runtime.kernels
    )


def facts_of(model: LoadedModel) -> ModelFacts:
    """Describe a model to the server."""
    search = model.engine.config.search
    return ModelFacts(
        os.getpid(),
        *model.languages,
        engine=model.engine.name,
        attention=isinstance(model.engine, TorchEngine),
        hypotheses=search.beam if search.strategy == "beam" else search.nbest,
    )


def answer(model: LoadedModel, task: Task, requests: Sequence[Request]) -> list[Answer | HTTPException]:
    """Return an answer per sentence. If a batch fails, each of its sentences is translated alone."""
    try:
        return [*_answers(model, task, requests)]
    except Exception as error:  # any error: the model stays usable
        failure = _failure(error, requests)
    # after the block, because the error keeps the memory of its frames
    if failure.status_code == 500:
        torch.ones(1, device=model.engine.device).item()  # fails on a GPU that is lost: another process takes over
    free_cached_memory(model.engine.device)
    if len(requests) == 1:
        return [failure]
    return [found for request in requests for found in answer(model, task, [request])]


def _failure(error: Exception, requests: Sequence[Request]) -> HTTPException:
    """Explain why a batch has no answer."""
    if any(isinstance(each, Exception) and is_out_of_memory(each) for each in (error, error.__cause__)):
        return HTTPException(503, "the model has too little memory for this: try again later, or ask for less")
    if isinstance(error, UserError):
        asked = isinstance(error, ConfigError) or any(request.beginning for request in requests)
        return HTTPException(400 if asked else 500, str(error))
    if len(requests) == 1:
        report_error(error)
    return HTTPException(500, "the model failed")


def _answers(model: LoadedModel, task: Task, requests: Sequence[Request]) -> list[Answer]:
    config, usual = model.engine.config, facts_of(model).hypotheses
    if task.choices:
        found = (model.next_words(each.text, each.beginning, count=task.choices) for each in requests)
        return [
            {"choices": [{"text": word.text, "probability": word.probability} for word in words]} for words in found
        ]
    translations = model.translate(
        requests,
        nbest=task.nbest,
        batch_tokens=max(1, config.batch_tokens * usual // max(usual, task.nbest)),  # as much memory as usual
        token_scores=task.details,
        seed=model.engine.seed,
        **({"beam": max(config.beam, task.nbest)} if config.strategy == "beam" else {}),
    )
    candidates = [
        (request.text, each) for request, found in zip(requests, translations, strict=True) for each in found.candidates
    ]
    details = iter(_details(model, candidates)) if task.details else repeat(Answer())
    return [
        {"candidates": [{"text": each.text, "score": each.score} | next(details) for each in found.candidates]}
        for found in translations
    ]


def _details(model: LoadedModel, candidates: Sequence[tuple[str, Candidate]]) -> list[Answer]:
    """Return the words of each sentence and of its candidate, and how much these attend to those."""
    engine, tokenizer = model.engine, model.engine.tokenizer
    read = [ids[: engine.max_source_tokens - 1] for ids in tokenizer.encode_input([text for text, _ in candidates])]
    pieces = [[token.piece for token in each.tokens] for _, each in candidates]
    source_words = [
        match_words(tokenizer.source_pieces(ids), text) for ids, (text, _) in zip(read, candidates, strict=True)
    ]
    words = [match_words(said, each.text) for said, (_, each) in zip(pieces, candidates, strict=True)]
    found: list[Answer] = [
        {
            "source_words": [word.text for word in of_source],
            "words": [
                {"text": word.text, "probability": word.probability} for word in word_probabilities(said, each.tokens)
            ],
        }
        for of_source, said, (_, each) in zip(source_words, words, candidates, strict=True)
    ]
    if engine.shows_attention:
        lengths = [1 + max(len(ids), len(said)) if ids and said else 0 for ids, said in zip(read, pieces, strict=True)]
        for batch in batches_by_length(lengths, ATTENTION_TOKENS):
            targets = [[BOS, *tokenizer.target_ids(pieces[index])] for index in batch]
            weights = engine.cross_attention([[*read[index], EOS] for index in batch], targets)
            for index, each in zip(batch, weights, strict=True):
                attention = word_attention(each, source_words[index], words[index])
                found[index]["attention"] = attention.astype("float64").round(4).tolist()
    return found
