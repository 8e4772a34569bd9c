"""The settings of the filters of web text."""

from dataclasses import dataclass

from nmt.config.checks import check_fraction


@dataclass(frozen=True, kw_only=True)
class WebData:
    """What is dropped of web pages."""

    min_letters: float = 0.0
    """Drop training pairs if letters are a smaller share of the characters of a side, without spaces; 0 does not check.
    About 0.6 drops tables, codes and lists of numbers."""
    drop_links: bool = False
    """Drop training pairs if web and e-mail addresses and tags differ between the sides, or are most of a side."""
    drop_boilerplate: bool = False
    """Drop training pairs with a side that is a menu, a notice about cookies, copyright or scripts, or a call to click,
    in English, German, French or Spanish."""

    def __post_init__(self) -> None:
        """Check the share."""
        check_fraction("data.min_letters", self.min_letters)
