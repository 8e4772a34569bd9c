"""The alignments of candidates: links between the words of a line and those of its translations."""

from typing import TYPE_CHECKING, Any, cast

from nmt.config.schema import TranslateConfig
from nmt.decoding.detail import DetailOption, TranslatedBlock
from nmt.decoding.piece_attention import attend
from nmt.errors import UserError
from nmt.features.alignments.linking import AlignmentSource, links
from nmt.features.alignments.settings import AlignedTranslation
from nmt.text.alignments import Link, write_links

if TYPE_CHECKING:
    from nmt.decoding.engine import Engine


class Alignment(DetailOption):
    """Links each word of a candidate to the source word that it attends to most."""

    setting = "alignments"
    refusal = "aligns no words"

    def is_offered(self, engine: "Engine") -> bool:
        """See `DetailOption.is_offered`."""
        return engine.attention_shape is not None

    def check(self, engine: "Engine") -> None:
        """See `DetailOption.check`."""
        if engine.attention_shape is not None:
            AlignmentSource.chosen(engine.config, *engine.attention_shape)
        elif self.is_wanted(engine.config):
            raise UserError("only engine=torch aligns words: choose it, or leave decoding.alignments off")

    def compute(self, engine: "Engine", block: TranslatedBlock) -> list[tuple[Link, ...]]:
        """See `Detail.compute`."""
        sources, targets = zip(*block.pairs, strict=True)
        return attend(engine, sources, targets, lambda _, pair: links(pair, engine.config))

    def file(self, config: TranslateConfig) -> str:
        """See `DetailOption.file`."""
        return cast(AlignedTranslation, config).alignments

    def to_json(self, value: Any) -> object:
        """See `DetailOption.to_json`."""
        return list(map(list, value))

    def line(self, value: Any) -> str:
        """See `DetailOption.line`."""
        return write_links(value)


ALIGNMENT = Alignment()
