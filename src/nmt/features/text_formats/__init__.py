"""Tables and test sets as text: comma-separated and tab-separated values, JSON lines, and WMT's SGM files."""

from nmt.feature import Feature, FileFormat

CODE = "nmt.data.sources"

FEATURE = Feature(
    summary="parallel text in csv, tsv, JSON lines and sgm files",
    file_formats=(
        FileFormat(
            "json",
            (".jsonl", ".json", ".ndjson"),
            pairs=f"{CODE}.json_lines:pairs",
            shards=(".jsonl", ".jsonl.gz", ".jsonl.xz", ".json", ".json.gz", ".json.xz"),
        ),
        FileFormat("csv", (".csv",), pairs=f"{CODE}.comma_separated:pairs", shards=(".csv", ".csv.gz", ".csv.xz")),
        FileFormat("tsv", (".tsv",), pairs=f"{CODE}.tab_separated:pairs"),
        FileFormat("sgm", (".sgm", ".sgml"), sentences=f"{CODE}.sgm:sentences"),
    ),
)
