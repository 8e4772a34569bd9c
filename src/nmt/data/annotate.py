"""The task of data preparation that writes further references and labels."""

from nmt.config.schema import Config
from nmt.data.annotations import annotations_name, write_annotations
from nmt.data.corpora import CorpusSplit
from nmt.data.manifest import PreparationTasks
from nmt.data.records import JsonObject, annotate_task
from nmt.data.sources import registry
from nmt.data.sources.source import Fingerprint


def annotate(config: Config, tasks: PreparationTasks, split: CorpusSplit, fingerprint: Fingerprint) -> list[str]:
    """Write the further references and labels of a split; return the name of the task, if there are any."""
    found = registry.annotations(split.data, split.split)
    if not found:
        return []
    task, file = annotate_task(split.name), annotations_name(split.name)

    def write() -> JsonObject:
        sentences = tasks.manifest.collected(split.name).kept
        write_annotations(config.data_folder / file, found, sentences, f"data.{split.split}")
        return {"references": 1 + len(found.references), "labels": list(found.labels)}

    columns = {"references": split.data.reference_columns, "labels": list(found.labels)}
    tasks.run(task, {"source": fingerprint, "columns": columns}, [file], write)
    return [task]
