"""Commands that must end in a one-line error, after the settings of the plain run."""

WRONG_SETTINGS = (
    ("train", "training.stepz=3", "model=bigg"),
    ("train", "model=bigg", "training.stepz=3"),
    ("train", "training.optimizer=adm", "training.r_drop=-1"),
    ("train", "model.architecture=decoder_only", "training.guided_weight=0.1", "training.r_drop=1"),
    ("train", "training.guided_weight=0.1", "noise.bpe_dropout=0.1"),
    ("train", "training.freeze=[encodr]", "name=frozen"),
    ("train", "data.corpus=absent", "name=absent"),
    ("train", "model.d_model=16", "training.steps=20"),
    ("data", "data.train_alignments=text/test.links"),
    ("data", "data.mixture.more.tag=@more@", "data.corpus=wrong"),
    ("translate", "decoding.terms=text/absent.tsv", "decoding.strategy=sample"),
    ("score", "checkpoint=last", "input=text/one_column.tsv"),
)
