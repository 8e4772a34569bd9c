"""Files at the addresses that fsspec reads: s3://, gs://, az://, hf://, https://, file:// and others."""

from nmt.feature import Feature

FEATURE = Feature(
    summary="text, corpora and runs at addresses such as s3://bucket/runs, with local copies",
    packages={
        "s3fs": "s3fs>=2025.3",
        "gcsfs": "gcsfs>=2025.3",
        "adlfs": "adlfs>=2026.8",
        "aiohttp": "aiohttp>=3.9",
    },
)
