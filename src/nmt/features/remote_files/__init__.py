"""Files at the addresses that fsspec reads: s3://, gs://, az://, hf://, https://, file:// and others."""

from nmt.feature import Feature

FEATURE = Feature(
    summary="text at addresses such as s3://bucket/corpus.en.gz, with a local cache",
    page="docs/remote_files.md",
    packages={
        "s3fs": "s3fs>=2024.6",
        "gcsfs": "gcsfs>=2024.6",
        "adlfs": "adlfs>=2024.4",
        "aiohttp": "aiohttp>=3.9",
    },
    addresses="nmt.features.remote_files.addresses:ADDRESSES",
)
