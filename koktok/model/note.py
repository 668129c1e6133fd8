"""`Note`: what is shown with the figures of a tokenizer, in two languages."""

from __future__ import annotations


class Note(str):
    """An English text, with the same in Korean.

    Examples
    --------
    >>> note = Note("spaces are no tokens", "공백은 토큰이 되지 않음")
    >>> note, note.korean
    ('spaces are no tokens', '공백은 토큰이 되지 않음')
    """

    korean: str

    def __new__(cls, english: str, korean: str = "") -> Note:  # noqa: D102
        note = super().__new__(cls, english)
        note.korean = korean
        return note
