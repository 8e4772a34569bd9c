"""`nmt import`: make a run of a model that other programs trained, or of an export."""

from dataclasses import asdict, fields

from nmt.config.keys import written
from nmt.config.schema import Config, ModelConfig
from nmt.errors import UserError
from nmt.features.imports.import_folder import import_folder
from nmt.features.imports.settings import ImportedFolder


def run(config: Config) -> None:
    """Write the run, and print how to use it."""
    if not config.of(ImportedFolder).source:
        raise UserError("name the folder of a model to import: nmt import source=FOLDER")
    run_folder, imported = import_folder(config)
    model, tokenizer = imported.settings.model, imported.tokenizer
    parameters = sum(weight.numel() for weight in imported.weights.values())
    languages = f"{imported.settings.data.source_lang} to {imported.settings.data.target_lang}"
    sizes = " and ".join(f"{size:,}" for size in dict.fromkeys((tokenizer.source_size, tokenizer.target_size)))
    print(f"{run_folder}: {languages}, {parameters:,} parameters, {sizes} word pieces")
    print(f"its shape: {_shape(model, tokenizer.joint)}")


def _shape(model: ModelConfig, joint: bool) -> str:
    """Return the settings of the model that are not the defaults, as they are written on the command line."""
    usual, found = asdict(ModelConfig()), asdict(model)
    words = [f"tokenizer.joint={written(joint)}"]
    for field in fields(ModelConfig):
        value = found[field.name]
        if value != usual[field.name]:
            words.append(f"model.{field.name}={written(value)}")
    return " ".join(words)
