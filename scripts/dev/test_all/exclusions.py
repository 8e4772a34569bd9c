"""The commands of README and docs that the stage `documents` does not run, each with the reason."""

from collections.abc import Iterable

from test_all.statements import Statement

NOT_RUN = {
    "make test": "the stage tests runs more",
    "make demo    #": "the stage demo runs it in full size",
    "make table3 ARGS=\"table3.scale=": "takes 25 minutes or hours; the stage table3 runs two rows",
    ".venv/bin/python scripts/bench": "a measurement of minutes, partly with other toolkits; tests/unit/test_bench.py",
    **{
        f".venv/bin/python scripts/dev/{tool}": "a tool of the developers that takes minutes or hours"
        for tool in (
            "export_clients", "fake_cuda", "faults", "filter_noise", "full_size", "fuzz", "gpu_peer",
            "load_test", "measure_step", "own_text", "plan_memory", "soak", "techniques",
        )
    },
    ".venv/bin/python scripts/dev/compare_steps --rounds 8 --turn 10 --sources ../before": "needs an earlier source; "
        "tests/unit/test_bench.py",
    'make bench ARGS="machine --cpu avx2"': "measures for minutes; the stage tests has such rows of its own",
    ".venv/bin/python -m": "the stage tests runs it",
    'make export ARGS="experiment=': "needs a model that has learned; the stage demo exports one",
    "nmt export -m": "the same; the stage demo runs it",
    'make import ARGS="source=FOLDER': "stands for any folder; tests/features/imports",
    'make data ARGS="experiment=own data.train=[s3:': "needs a store of objects; tests/features/remote_files",
    'make data ARGS="experiment=multi30k paths.data=s3:': "needs a store of objects, as above",
    'make train ARGS="experiment=multi30k paths.data=s3:': "needs a store of objects, as above",
    'make train ARGS="experiment=multi30k name=tuned training.init_from=s3:': "needs a store of objects, as above",
    ".venv/bin/nmt translate input=news.en output=news.de checkpoint=s3:": "needs a store of objects, as above",
    ".venv/bin/nmt translate input=https:": "needs a network and a store of objects, as above",
    'make synthesize ARGS="experiment=own input=mono.en data.engine=ray data.ray_address=': "needs a cluster; "
        "tests/features/test_translation_on_ray.py",
    'make serve ARGS="experiment=multi30k engine=ctranslate2"': "needs such an export",
    ".venv/bin/nmt train -m experiment=demo hydra/sweeper=search": "trains for minutes; "
        "tests/features/sweep_results/test_search.py",
    'make data train average eval ARGS="data.test=[sacrebleu:': "downloads; tests/features/sacrebleu_sets",
    'make train ARGS="experiment=wmt14_en_de_big runtime.shard=weights': "needs several GPUs; tests/features/sharding",
    'make describe ARGS="model.layers=20': "does not fit the small batches; tests/unit/test_documentation.py runs it",
    "sbatch": "needs Slurm; tests/unit/test_slurm.py runs the script with a substitute",
    ".venv/bin/python scripts/torchrun --nnodes": "needs two machines; tests/integration/test_ranks.py",
    'make eval ARGS="experiment=demo decoding.strategy=mbr decoding.epsilon=0.02 decoding.utility=comet':
        "needs a model of the Hub; the stage comet uses one with random weights",
    'make eval ARGS="experiment=demo evaluation.comet=': "needs a model of the Hub, as above",
}  # fmt: skip
"""Reasons by the beginning of the commands."""


def reason_not_to_run(text: str) -> str:
    """Return why a command is not run; empty if it is."""
    return next((reason for start, reason in NOT_RUN.items() if text.startswith(start)), "")


def stale_exclusions(found: Iterable[Statement]) -> list[str]:
    """Return the exclusions to which no command belongs."""
    texts = [each.text for each in found]
    return [start for start in NOT_RUN if not any(text.startswith(start) for text in texts)]
