"""The process of a model: it loads the model, and answers one batch after the other."""

from contextlib import suppress
from multiprocessing.connection import Connection

from nmt.compute.machine import check_usable, free_cached_memory, is_out_of_memory, prepare_machine
from nmt.config.decoding import DecodingConfig
from nmt.decoding.attention import attention_bytes
from nmt.decoding.load_engine import load, load_engine
from nmt.decoding.loaded_model import LoadedModel
from nmt.decoding.request import Request
from nmt.decoding.torch_engine import TorchEngine
from nmt.decoding.translation import Candidate, Translation
from nmt.decoding.word_details import WordProbability, word_attention, word_probabilities
from nmt.errors import ConfigError, LimitError, UserError
from nmt.serving.errors import RETRY, report_error
from nmt.serving.requests import Answer, Batch, Failure, ModelFacts, ModelSource, Task
from nmt.text.special import BOS, EOS
from nmt.text.word_pieces import Word, match_words

FAILED = 500
"""The status of an error that nobody expects."""
MAX_ATTENTION_BYTES = 1 << 28
"""The most memory that the attention of a sentence may need in a process."""


def answer_batches(connection: Connection, model: LoadedModel) -> None:
    """Send the facts of the model, then an answer for each batch that is received, until the server has ended."""
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        connection.send(facts_of(model))
        while True:
            batch: Batch = connection.recv()
            connection.send(answer(model, batch))


def load_source(source: ModelSource) -> LoadedModel:
    """Load the model."""
    runtime = source.config.runtime
    if not source.folder:
        return load_engine(source.config, prepare_machine(runtime))
    return load(
        source.folder,
        device=runtime.device,
        precision=runtime.precision,
        threads=runtime.threads,
        kernels=runtime.kernels,
    )


def facts_of(model: LoadedModel) -> ModelFacts:
    """Describe a model to clients."""
    is_torch, record = isinstance(model.engine, TorchEngine), model.checkpoint
    search = model.engine.config.search
    return ModelFacts(
        *model.languages,
        engine=model.engine.name,
        device=model.engine.device.type,
        attention=is_torch,
        choices=is_torch,
        terms=is_torch and search.strategy == "beam",  # samples cannot have terms
        hypotheses=_hypotheses(search),
        weights=(record.quantization, record.sha256, *(member.sha256 for member in record.ensemble)),
    )


def _hypotheses(search: DecodingConfig) -> int:
    return search.beam if search.strategy == "beam" else search.nbest


def answer(model: LoadedModel, batch: Batch) -> list[Answer | Failure]:
    """Return an answer per sentence; one that fails does not affect the others: it is found by halving the batch.

    Raise the error of a GPU that does nothing any more, so that another process takes the place of this one.
    """
    failure = None
    try:
        return [*_answers(model, batch)]
    except Exception as error:  # any error: the model stays usable
        if len(batch.requests) == 1:
            failure = _failure(error, batch)
    # after the block, because the error keeps the memory of its frames
    if failure and failure.status == FAILED:
        check_usable(model.engine.device)
    else:
        free_cached_memory(model.engine.device)
    if failure:
        return [failure]
    half = len(batch.requests) // 2
    return [
        found
        for requests in (batch.requests[:half], batch.requests[half:])
        for found in answer(model, Batch(batch.task, requests))
    ]


def _failure(error: Exception, batch: Batch) -> Failure:
    """Explain why a sentence has no answer."""
    (request,) = batch.requests
    if any(isinstance(each, Exception) and is_out_of_memory(each) for each in (error, error.__cause__)):
        return _out_of_memory(batch.task)
    if isinstance(error, LimitError):
        return Failure(str(error), 413)
    if isinstance(error, UserError):
        wrong = isinstance(error, ConfigError) or request.terms or request.beginning
        return Failure(str(error), 400 if wrong else 500)
    report_error(error)
    return Failure("the model failed", FAILED)


def _out_of_memory(task: Task) -> Failure:
    """Refuse what needs more memory than a plain translation; a plain one, which has a limit, may succeed later."""
    if task == Task():
        return Failure("the model has too little memory at the moment: try again", 503, RETRY)
    return Failure(
        "the model has too little memory for this: ask for fewer candidates, a smaller beam or no details", 413
    )


def _answers(model: LoadedModel, batch: Batch) -> list[Answer]:
    if batch.task.choices:
        return [_choices(model, request, batch.task.choices) for request in batch.requests]
    if batch.task.details or batch.task.alignments:
        for request in batch.requests:
            _check_attention(model, request)
    pairs = zip(batch.requests, _translate(model, batch), strict=True)
    return [_translated(model, batch.task, request.text, translation) for request, translation in pairs]


def _translate(model: LoadedModel, batch: Batch) -> list[Translation]:
    task, config = batch.task, model.engine.config
    beam = _beam(model, task)
    usual = _hypotheses(config.search)
    hypotheses = max(usual, task.nbest, *beam.values())
    return model.translate(
        batch.requests,
        nbest=task.nbest,
        batch_tokens=max(1, config.batch_tokens * usual // hypotheses),  # as much memory as usual
        token_scores=task.details,
        seed=model.engine.seed,
        **beam,
        alignments=task.alignments,
    )


def _beam(model: LoadedModel, task: Task) -> dict[str, int]:
    """Return the setting of the beam for a task; refuse one for a model that does not search with a beam."""
    if model.engine.config.strategy != "beam":
        if task.beam:
            raise ConfigError("this model does not search with a beam: leave it out")
        return {}
    return {"beam": task.beam or max(model.engine.config.beam, task.nbest)}


def _check_attention(model: LoadedModel, request: Request) -> None:
    """Refuse a sentence whose attention may need too much memory, before it is translated."""
    engine = model.engine
    if not isinstance(engine, TorchEngine):
        return
    source = len(engine.tokenizer.encode_input([request.text])[0]) + 1
    target = min(source + len(request.beginning) + engine.config.extra_length, engine.max_target_tokens)
    if attention_bytes(engine.models[0].config, source, target) > MAX_ATTENTION_BYTES:
        raise LimitError(
            f"a sentence of {source} word pieces is too long for details, whose attention may need at most "
            f"{MAX_ATTENTION_BYTES >> 20} MiB: ask without details, or send shorter sentences"
        )


def _translated(model: LoadedModel, task: Task, source: str, translation: Translation) -> Answer:
    return {"candidates": [_candidate(model, task, source, each) for each in translation.candidates]}


def _candidate(model: LoadedModel, task: Task, source: str, candidate: Candidate) -> Answer:
    found: Answer = {"text": candidate.text, "score": candidate.score}
    has_words = bool(source.strip() and candidate.text.strip())
    if task.details:
        found |= _words(model, source, candidate, attend=has_words and model.engine.shows_attention)
    if has_words and task.alignments:
        found["alignment"] = list(map(list, candidate.alignment))
    return found


def _words(model: LoadedModel, source: str, candidate: Candidate, *, attend: bool) -> Answer:
    """Return the words of a sentence and of a candidate, and how much these attend to those."""
    tokenizer, pieces = model.engine.tokenizer, [token.piece for token in candidate.tokens]
    source_ids, source_words = _read(model, source)
    words = match_words(pieces, candidate.text)
    found: Answer = {
        "source_words": [word.text for word in source_words],
        "words": [_to_json(word) for word in word_probabilities(words, candidate.tokens)],
    }
    if attend:
        (weights,) = model.engine.cross_attention([[*source_ids, EOS]], [[BOS, *tokenizer.target_ids(pieces)]])
        found["attention"] = word_attention(weights, source_words, words).astype("float64").round(4).tolist()
    return found


def _read(model: LoadedModel, source: str) -> tuple[list[int], list[Word]]:
    """Return the ids that the model reads of a sentence, without EOS, and the words."""
    tokenizer = model.engine.tokenizer
    (ids,) = tokenizer.encode_input([source])
    read = ids[: model.engine.max_source_tokens - 1]
    text = source if len(read) == len(ids) else tokenizer.decode_source(read)
    return read, match_words(tokenizer.source_pieces(read), text)


def _to_json(word: WordProbability) -> Answer:
    return {"text": word.text, "probability": word.probability}


def _choices(model: LoadedModel, request: Request, count: int) -> Answer:
    found = model.next_words(request.text, request.beginning, count=count)
    return {"choices": [_to_json(word) for word in found]}
