"""Translate a file by a model of others into a corpus; what it has answered once is not asked again."""

import json
from collections import Counter
from hashlib import sha256
from itertools import islice
from typing import Any

from tqdm import tqdm

from nmt.compute.machine import prepare_machine
from nmt.config.folders import expanded
from nmt.config.tree import Config
from nmt.errors import UserError
from nmt.packages import import_optional
from nmt.storage.files import replacing
from nmt.synthesis.chat import Chat
from nmt.synthesis.folder import JOURNAL, Answer, Journal, SynthesisFolder
from nmt.synthesis.kept import Fault, best, fault_finder
from nmt.text.lines import read_input

BATCH_SENTENCES, SHOWN_CHARACTERS = 32, 200


def run(config: Config, folder: SynthesisFolder) -> None:
    """Ask for the translations that are not in the journal, and write the pairs that are good enough."""
    teacher = config.teacher
    with folder.exclusive({"teacher.model": teacher.model, "languages": [*config.data.languages]}):
        fault = fault_finder(config)  # before anything is paid for, because it may fail
        source: Chat | Local = Chat(config) if teacher.url else Local(config)
        keys = {
            line: sha256(json.dumps(source.request(line)).encode()).hexdigest()[:32]
            for line in read_input(config.input)
            if line.strip()
        }
        journal = Journal(folder.path / JOURNAL)
        missing = [(key, line) for line, key in keys.items() if key not in journal.answers]
        print(f"{folder.path}: {len(keys):,} different lines, {len(missing):,} to translate", flush=True)
        with tqdm(missing, unit=" pairs", leave=False, disable=None) as bar:
            source.answer(bar, journal)
        answered = {line: journal.answers[key] for line, key in keys.items() if key in journal.answers}
        _write(config, folder, fault, answered)
    price = f" for {teacher.cost(*journal.tokens):.4g}" if teacher.price else ""
    if left := len(keys) - len(answered):
        more = f", with more than teacher.budget={teacher.budget:g}" if teacher.budget else ""
        price += f"; {left:,} have none: run the same command again{more}"
    print(f"{len(answered):,} lines have an answer{price}", flush=True)


def _write(config: Config, folder: SynthesisFolder, fault: Fault, answered: dict[str, list[Answer]]) -> None:
    """Write the best answer to each line that has one without a fault, and say how many have which fault."""
    dropped, good = Counter[str](), dict[str, list[str]]()
    for line, answers in answered.items():
        faults = [fault(line, text, end) for text, end in answers]
        if kept := [text for (text, _), found in zip(answers, faults, strict=True) if not found]:
            good[line] = kept
        else:
            dropped[faults[0]] += 1
    has_scores = bool(config.evaluation.comet) or config.decoding.search.nbest > 1
    with replacing(folder.shard(0)) as partial, partial.open("w", encoding="utf-8") as file:
        for line, text, score in best(good, config.evaluation.comet):
            row: dict[str, object] = {config.data.source_lang: line, config.data.target_lang: text}
            file.write(json.dumps(row | ({"score": round(score, 2)} if has_scores else {}), ensure_ascii=False) + "\n")
    counts = ", ".join(f"{count:,} for {name}" for name, count in dropped.most_common())
    print(f"{folder.path}: {len(good):,} pairs; dropped: {counts or 'none'}", flush=True)


class Local:
    """A model that translates in a folder, for transformers or CTranslate2, with a tokenizer for transformers."""

    def __init__(self, config: Config) -> None:
        """Load the model."""
        self.config, folder, device = config, expanded(config.teacher.model), prepare_machine(config.runtime).device
        if not folder.is_dir():
            raise UserError(f"teacher.model={folder} is no folder: name one, or the address of an API in teacher.url")
        library = import_optional("transformers")
        self.is_converted = (folder / "model.bin").is_file()
        try:
            self.tokenizer = library.AutoTokenizer.from_pretrained(folder, local_files_only=True)
            if self.is_converted:
                self.model = import_optional("ctranslate2").Translator(str(folder), device=device.type)
            else:
                self.model = library.AutoModelForSeq2SeqLM.from_pretrained(folder, local_files_only=True).to(device)
        except (OSError, ValueError, RuntimeError) as error:
            reason = " ".join(str(error).split())[:SHOWN_CHARACTERS]
            raise UserError(f"teacher.model={folder} cannot be loaded ({reason}): name another folder") from error
        self.marks = list[str]()  # the word that begins translations into the language, if the model has several
        if hasattr(self.tokenizer, "src_lang"):
            self.tokenizer.src_lang, target = config.data.languages
            self.marks = [mark for mark in (target, f"__{target}__") if mark in self.tokenizer.get_vocab()]

    def request(self, line: str) -> dict[str, Any]:
        """Return what the translation of a line depends on."""
        model, languages = self.config.teacher.model, self.config.data.languages
        return {"model": model, "languages": languages, "beam": self.config.decoding.beam, "text": line}

    def answer(self, bar: "tqdm[tuple[str, str]]", journal: Journal) -> None:
        """Write the translations of all lines."""
        requests, tokenizer, beam, marks = iter(bar), self.tokenizer, self.config.decoding.beam, self.marks
        while batch := dict(islice(requests, BATCH_SENTENCES)):
            lines = list(batch.values())
            if self.is_converted:
                pieces = [
                    tokenizer.convert_ids_to_tokens(ids) for ids in tokenizer(lines, truncation=True)["input_ids"]
                ]
                prefixes = [marks] * len(lines) if marks else None
                found = self.model.translate_batch(pieces, target_prefix=prefixes, beam_size=beam)
                ids = [tokenizer.convert_tokens_to_ids(each.hypotheses[0]) for each in found]
            else:
                tensors = tokenizer(lines, return_tensors="pt", padding=True, truncation=True).to(self.model.device)
                forced = {"forced_bos_token_id": tokenizer.convert_tokens_to_ids(marks[0])} if marks else {}
                longest = tensors["input_ids"].shape[1] + self.config.decoding.extra_length
                ids = self.model.generate(**tensors, num_beams=beam, max_new_tokens=longest, **forced)
            for key, text in zip(batch, tokenizer.batch_decode(ids, skip_special_tokens=True), strict=True):
                journal.add(key, [(text, "stop")])
