"""The task of data preparation that writes further references and labels."""

from nmt.config.schema import Config
from nmt.data.annotations import annotations_name, write_annotations
from nmt.data.manifest import PreparationTasks
from nmt.data.records import JsonObject, annotate_task
from nmt.data.sources import registry
from nmt.data.sources.source import Fingerprint


def annotate(config: Config, tasks: PreparationTasks, split: str, fingerprint: Fingerprint) -> list[str]:
    """Write the further references and labels of a split; return the name of the task, if there are any."""
    found = registry.annotations(config.data, split)
    if not found:
        return []

    def write() -> JsonObject:
        path, sentences = config.data_folder / annotations_name(split), tasks.manifest.collected(split).kept
        write_annotations(path, found, sentences, f"data.{split}")
        return {"references": 1 + len(found.references), "labels": list(found.labels)}

    columns = {"references": config.data.reference_columns, "labels": list(found.labels)}
    tasks.run(annotate_task(split), {"source": fingerprint, "columns": columns}, [annotations_name(split)], write)
    return [annotate_task(split)]
