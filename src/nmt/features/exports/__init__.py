"""A trained model in the formats of other programs, and engines that translate in int8."""

from nmt.feature import COMMON, Choice, Command, Feature, Group

INT8 = ("int8",)
"""What a format brings that can store weights as int8."""
FEATURE = Feature(
    summary="models for CTranslate2, Argos Translate, Hugging Face, ONNX and web pages, and two engines",
    packages={
        "ctranslate2": "ctranslate2>=4.5",
        "onnx": "onnx>=1.17",
        "onnxruntime": "onnxruntime>=1.20",
        "tokenizers": "tokenizers>=0.21",
        "transformers": "transformers>=5",
    },
    commands={
        "export": Command(
            "nmt.features.exports.command",
            "convert a trained model to the format of other programs",
            ("checkpoint", "export", "input", "decoding", *COMMON),
        ),
    },
    settings={"export": Group("nmt.features.exports.settings:ExportConfig")},
    check="nmt.features.exports.settings:check",
    choices={
        "engine": {"ctranslate2": Choice("nmt.features.exports.loading:load_named_export", "runs the exported model")},
        "export.target": {
            "argos": Choice("nmt.features.exports.argos:TARGET", "Argos Translate and LibreTranslate", INT8),
            "ctranslate2": Choice("nmt.features.exports.ctranslate2:TARGET", "a fast engine", INT8),
            "huggingface": Choice("nmt.features.exports.huggingface:TARGET", "MarianMTModel"),
            "onnx": Choice("nmt.features.exports.onnx:ONNX", "transformers.js and onnxruntime", INT8),
            "web": Choice("nmt.features.exports.onnx:PAGE", "a page that translates in the browser", INT8),
        },
    },
)
