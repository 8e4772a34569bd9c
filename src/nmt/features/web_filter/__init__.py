"""Filters of the training text for what web pages have besides sentences: links, menus, notices."""

from nmt.feature import Feature

FEATURE = Feature(
    summary="filters that drop training pairs with links, menus and notices of web pages",
    filters=tuple(f"nmt.data.filters.web:{name}" for name in ("LETTERS", "LINKS", "BOILERPLATE")),
)
