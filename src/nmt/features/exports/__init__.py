"""A trained model in the formats of other programs, and engines that translate in int8."""

from nmt.feature import COMMON, Command, Feature

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
            "nmt.export.command",
            "convert a trained model to the format of other programs",
            ("checkpoint", "export", "input", "decoding", *COMMON),
        ),
    },
)
