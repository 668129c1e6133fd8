"""The tables of a report, each built once; Markdown, the page and the terminal print the same cells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from koktok.metrics import Difference, Measure, Scores, Value
from koktok.report.charts import Label
from koktok.report.korean import KOREAN, korean_units
from koktok.report.rows import HEADLINE, by_kind, columns_of, compared, equal_tokens, pareto_front, units_of
from koktok.report.schema import Report

ARROWS: Final = {"lower": "\u00a0↓", "higher": "\u00a0↑", "one": "\u00a0→1", "none": ""}

HUNDREDTHS: Final = ("bytes_per_token", "chars_per_token")

SURE: Final = 0.05
"""p-values below this are printed in bold."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A figure as tables print it: `small` is its interval or p-value, `value` the number to sort by."""

    text: str = "–"
    small: str = ""
    value: float | None = None
    bold: bool = False


@dataclass(frozen=True, slots=True)
class Column:
    """A heading; columns of figures are aligned to the right."""

    title: Label
    figure: bool = True
    hint: str = ""


@dataclass(frozen=True)
class PageTable:
    """A table with a row for each tokenizer, whose number and name come first."""

    columns: Sequence[Column]
    rows: Sequence[tuple[Scores, Sequence[Cell]]]
    title: Label = ("", "")
    sizes: bool = False
    """Whether the size of the vocabulary comes behind the name."""
    front: frozenset[int] = frozenset()
    """Numbers of the rows with a star."""


@dataclass(frozen=True)
class DataTable:
    """A table of what was measured on; the last column is a digest."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Label]]


@dataclass(frozen=True)
class Section:
    """Tables under one heading, with what explains them."""

    title: Label
    text: Label = ("", "")
    tables: Sequence[PageTable] = field(default_factory=tuple)


def word(text: str) -> Label:
    """A term that KOREAN has, in both languages."""
    return text, KOREAN.get(text, text)


def spelled(value: Value | None, measure: Measure) -> str:
    """Spell a figure with as many digits as it deserves.

    Examples
    --------
    >>> f1 = Measure(name="f1", title="F1", title_ko="F1", unit="", better="higher", definition="")
    >>> [spelled(x and Value(x), f1) for x in (0.70249, None, 12345.0, 0.0000123)]
    ['0.702', '–', '12,345', '1.2e-05']
    """
    if value is None:
        return "–"
    size = abs(value.value)
    if size >= 1000 or (size >= 100 and float(size).is_integer()):
        return f"{value.value:,.0f}"
    if 0 < size < 0.0005:
        return f"{value.value:.1e}"
    return f"{value.value:.2f}" if measure.name in HUNDREDTHS or size >= 100 else f"{value.value:.3f}"


def figure(value: Value | None, measure: Measure) -> Cell:
    """A figure with its interval.

    Examples
    --------
    >>> f1 = Measure(name="f1", title="F1", title_ko="F1", unit="", better="higher", definition="")
    >>> figure(Value(0.7, 0.6, 0.81), f1).small
    '[0.600, 0.810]'
    """
    if value is None:
        return Cell()
    ends = [spelled(Value(end), measure) for end in (value.low, value.high) if end is not None]
    return Cell(spelled(value, measure), f"[{', '.join(ends)}]" if len(ends) == 2 else "", value.value)


def plain_figure(value: float | None) -> Cell:
    """A figure with three digits behind the point."""
    return Cell() if value is None else Cell(f"{value:.3f}", "", value)


def signed(difference: Difference | None) -> Cell:
    """A difference with its interval and its adjusted p-value.

    Examples
    --------
    >>> [signed(Difference(1, adjusted=p)).small for p in (0.0302, 1e-8, None)]
    ['p = .030', 'p < .001', '']
    """
    if difference is None:
        return Cell()
    parts, p = [], difference.adjusted
    if difference.low is not None and difference.high is not None:
        parts.append(f"[{difference.low:+.4f}, {difference.high:+.4f}]")
    if p is not None:
        parts.append("p < .001" if p < 0.001 else f"p = {p:.3f}".replace(" 0.", " ."))
    return Cell(f"{difference.value:+.4f}", " ".join(parts), difference.value, p is not None and p < SURE)


def sections_of(report: Report) -> dict[str, Section]:
    """All tables of a report by section, in the order of the page; sections without rows are left out."""
    sections = {
        "summary": Section(("Summary", "요약"), _summary_text(report), [measured(report, columns_of(report))]),
        "gold": _gold(report),
        "kinds": _kinds(report),
        "spans": _spans(report),
        "equal": _equal(report),
        "domains": _domains(report),
        "embeddings": _embeddings(report),
        "differences": _differences(report),
        "all": Section(("All measures", "모든 지표"), ("", ""), [measured(report, report.measures)]),
    }
    return {name: part for name, part in sections.items() if any(table.rows and table.columns for table in part.tables)}


def measured(report: Report, measures: Sequence[Measure]) -> PageTable:
    """The figures of some measures, rows that did not run among them."""
    columns = [
        Column(
            (m.title + ARROWS[m.better], m.title_ko + ARROWS[m.better]),
            hint=m.name + (f" [{m.unit}]" if m.unit else ""),
        )
        for m in measures
    ]
    rows = [(row, [figure(row.values.get(m.name), m) for m in measures] if row.ran else []) for row in report.rows]
    return PageTable(columns, rows, sizes=True, front=frozenset(row.number for row in pareto_front(report.rows)))


def _summary_text(report: Report) -> Label:
    if not pareto_front(report.rows):
        return "", ""
    units, units_ko = units_of(report)
    return (
        "★ Pareto-optimal in tokens per eojeol and boundary F1 (analysers and trivial rows are left out). "
        f"In brackets: 95 % intervals, Student's t over {units}.",
        "★은 어절당 토큰 수와 경계 F1의 파레토 최적입니다(형태소 분석기와 단순 기준 제외). "
        f"괄호 안은 95% 신뢰 구간(스튜던트 t)이며 재표집 단위는 {units_ko}입니다.",
    )


def _ran(report: Report) -> Iterable[Scores]:
    return (row for row in report.rows if row.ran)


def _gold(report: Report) -> Section:
    def cell(row: Scores, gold: str) -> Cell:
        f1, *others = (row.values.get(f"boundary_{part}@{gold}") for part in ("f1", "precision", "recall"))
        shown = ", ".join(plain_figure(other.value if other else None).text for other in others)
        return Cell(f"{f1.value:.3f}", f"({shown})", f1.value) if f1 else Cell()

    columns = [Column((f"{g.name} ({g.standing})", f"{g.name} ({word(g.standing)[1]})")) for g in report.golds]
    return Section(
        ("Morpheme boundaries, by gold corpus", "정답 말뭉치별 형태소 경계"),
        (
            "F1 (precision, recall) over places between two syllables inside an eojeol. “human”: the morphemes were annotated by people; "
            "“silver”: by a program, or it is not known by whom.",
            "어절 안의 두 음절 사이에서 측정한 F1(정밀도, 재현율)입니다. ‘사람’은 사람이 형태소를 표시한 말뭉치, ‘자동’은 프로그램이 "
            "표시했거나 누가 했는지 밝혀지지 않은 말뭉치입니다.",
        ),
        [PageTable(columns, [(row, [cell(row, gold.name) for gold in report.golds]) for row in _ran(report)])],
    )


def _kinds(report: Report) -> Section:
    tables = []
    for gold, rows in by_kind(report):
        columns = [Column((f"{kind} ({n:,})", f"{word(kind)[1]} ({n:,})")) for kind, n in gold.kinds.items()]
        names = [f"recall:{kind}@{gold.name}" for kind in gold.kinds]
        title = f"{gold.name} ({gold.standing})", f"{gold.name} ({word(gold.standing)[1]})"
        tables.append(PageTable(columns, [(row, [_three(row, name) for name in names]) for row in rows], title))
    return Section(
        ("Recall by kind of boundary", "경계 종류별 재현율"),
        (
            "N noun, J particle (josa), V verb or adjective, E ending (eomi), XSV and XSN suffixes, VCP the copula; in brackets the "
            "number of boundaries.",
            "N 체언, J 조사, V 용언, E 어미, XSV와 XSN 접미사, VCP 지정사. 괄호 안은 경계의 수입니다.",
        ),
        tables,
    )


def _three(row: Scores, name: str) -> Cell:
    return plain_figure(row.values[name].value if name in row.values else None)


def _spans(report: Report) -> Section:
    measure = report.measure("span_borders")
    rows = [
        (row, [figure(row.values.get(f"span_borders@{one.name}"), measure) for one in report.spans] if measure else [])
        for row in _ran(report)
    ]
    return Section(
        ("Spans that tokens can express", "토큰으로 가리킬 수 있는 구간"),
        (
            "Share of marked spans (entities, answers) whose ends are both token boundaries, so that a model over tokens can "
            "point at them; in brackets 95 % intervals.",
            "표시된 구간(개체명, 답 구간) 가운데 양끝이 토큰 경계인 것의 비율로, 토큰 단위 모델이 정확히 가리킬 수 있는 구간입니다. "
            "괄호 안은 95% 신뢰 구간입니다.",
        ),
        [PageTable([Column((f"{one.name} ({one.spans:,})",) * 2) for one in report.spans], rows)],
    )


def _equal(report: Report) -> Section:
    rows = [
        (row, [_three(row, "fertility"), plain_figure(row.values[HEADLINE].value), plain_figure(ours)])
        for row, _, ours in equal_tokens(report)
    ]
    columns = [
        Column(("tokens per eojeol", "어절당 토큰 수")),
        Column(("F1", "F1")),
        Column(("koktok at as many tokens", "같은 토큰 수의 koktok")),
    ]
    return Section(
        ("F1 at equal tokens", "같은 토큰 수에서의 F1"),
        (
            "Boundary F1 before particles, endings and the copula (mean of the gold corpora) of each row, and of koktok's rows, "
            "interpolated linearly to the same number of tokens per eojeol.",
            "조사, 어미, 지정사 앞 경계의 F1(정답 말뭉치 평균)입니다. 오른쪽 열은 koktok의 두 결과를 선형 보간해 같은 어절당 "
            "토큰 수에서 구한 값입니다.",
        ),
        [PageTable(columns, rows)],
    )


def _domains(report: Report) -> Section:
    names = [text.name for text in report.texts] if len(report.texts) > 1 else []
    tables = []
    for measure in filter(None, map(report.measure, ("fertility", "bytes_per_token", "tokens_per_char"))):
        rows = [
            (row, [figure(_alone(row.values.get(f"{measure.name}@{name}")), measure) for name in names])
            for row in _ran(report)
        ]
        tables.append(PageTable([Column((name, name)) for name in names], rows, (measure.title, measure.title_ko)))
    return Section(("Tokens, by text", "텍스트별 토큰 수"), tables=tables)


def _alone(value: Value | None) -> Value | None:
    """A figure without its interval."""
    return value and Value(value.value)


@dataclass(frozen=True)
class Shape:
    """A size of model: its width, its parameters without embeddings, and whether input and output share their matrix."""

    title: str
    width: int
    body: int
    tied: bool

    def embeddings(self, ids: int) -> int:
        """Parameters of the embeddings of so many ids.

        Examples
        --------
        >>> [shape.embeddings(128_256) for shape in SHAPES[1:3]]
        [262668288, 1050673152]
        """
        return ids * self.width * (1 if self.tied else 2)

    def compute(self, tokens: float, ids: int) -> float:
        """What so many tokens of a text cost in training, with the matrix of the output and without attention: multiplications.

        Examples
        --------
        >>> [round(shape.compute(1.9, 32_000) / shape.compute(1.8, 64_000), 2) for shape in SHAPES[:3]]
        [0.92, 0.99, 1.04]
        """
        return tokens * (self.body + ids * self.width)


SHAPES: Final = (
    Shape("135M (SmolLM2)", 576, 106_203_456, tied=True),
    Shape("1B (Llama 3.2)", 2048, 973_146_112, tied=True),
    Shape("8B (Llama 3.1)", 4096, 6_979_588_096, tied=False),
    Shape("70B (Llama 3.1)", 8192, 68_452_360_192, tied=False),
)
"""Models whose embeddings the report counts."""


def _embeddings(report: Report) -> Section:
    def cell(ids: int, shape: Shape) -> Cell:
        parameters = shape.embeddings(ids)
        return Cell(f"{parameters / 1e6:,.0f} M", f"({parameters / (parameters + shape.body):.1%})", parameters)

    rows = [(row, [cell(row.vocab_size, shape) for shape in SHAPES]) for row in _ran(report) if row.vocab_size]
    tied = {True: ("one matrix", "행렬 하나"), False: ("two matrices", "행렬 둘")}
    columns = [
        Column(tuple(f"{shape.title}: {shape.width:,} × {word}" for word in tied[shape.tied]))  # type: ignore[arg-type]
        for shape in SHAPES
    ]
    return Section(
        ("Parameters of the embeddings", "임베딩의 매개변수 수"),
        (
            "Ids × width, twice where input and output are two matrices; in brackets their share of a model with the other parameters "
            "of the one that is named.",
            "ID 수 × 폭이며, 입력과 출력이 서로 다른 행렬이면 그 두 배입니다. 괄호 안은 나머지 매개변수가 머리글의 모델과 같을 때 "
            "전체에서 차지하는 비율입니다.",
        ),
        [PageTable(columns, rows, sizes=True)],
    )


def _differences(report: Report) -> Section:
    names, (units, units_ko) = compared(report), units_of(report)
    measures = [report.measure(name) for name in names]
    columns = [Column((m.title, m.title_ko) if m else (name, name)) for name, m in zip(names, measures, strict=True)]
    rows = [(row, [signed(row.differences.get(name)) for name in names]) for row in report.rows if row.differences]
    tests = sum(one.p is not None for row in report.rows for one in row.differences.values())
    return Section(
        (f"Paired differences from {report.reference}", f"대응 표본 차이(기준 {report.reference})"),
        (
            f"Value minus that of {report.reference} on the same lines. In brackets: 95 % intervals, Student's t over {units}, with "
            "the degrees of freedom of Welch and Satterthwaite where a figure has several golds. p: the same t, adjusted for the "
            f"{tests} tests of this table (Holm). Bold: p under .05.",
            f"같은 줄에서 측정한 {report.reference}와의 차이이며, 괄호 안은 95% 신뢰 구간(스튜던트 t), 재표집 단위는 "
            f"{units_ko}입니다. p는 t 검정(여러 정답 말뭉치를 합친 지표는 웰치–새터스웨이트 자유도)의 값을 이 표의 검정 "
            f"{tests}개에 맞추어 홀름 방법으로 보정한 것입니다. 굵은 글씨는 p가 .05보다 작다는 뜻입니다.",
        ),
        [PageTable(columns, rows)],
    )


def data_tables(report: Report, files: Mapping[str, str] | None = None) -> list[DataTable]:
    """What was measured on: texts, by their `files` where these are known, gold corpora, marked spans."""
    files = files or {}

    def same(*cells: str) -> list[Label]:
        return [(cell, cell) for cell in cells]

    def resampled(units: str) -> Label:
        return (units, korean_units(units)) if units else ("–", "–")

    tables = [
        DataTable(
            [
                Column(("text", "텍스트"), figure=False),
                *map(Column, (("lines", "줄"), ("eojeols", "어절"), ("bytes", "바이트"))),
            ],
            [
                same(
                    files.get(text.name, text.name),
                    *(f"{n:,}" for n in (text.lines, text.eojeols, text.bytes)),
                    text.digest,
                )
                for text in (*report.texts, *report.beside)
            ],
        ),
        DataTable(
            [
                Column(("gold corpus", "정답 말뭉치"), figure=False),
                Column(("standing", "주석"), figure=False),
                Column(("sentences", "문장")),
                Column(("words", "어절")),
                Column(("skipped words", "건너뛴 어절")),
                Column(("coverage", "채점한 어절의 비율")),
                Column(("F1 of one token per syllable", "한 음절 한 토큰일 때의 F1")),
                Column(("maximum recall without cuts inside syllables", "음절을 쪼개지 않을 때의 재현율 상한")),
                Column(("resampled", "재표집 단위"), figure=False),
            ],
            [
                [
                    (gold.name, gold.name),
                    word(gold.standing),
                    *same(f"{gold.sentences:,}", f"{gold.words:,}", f"{gold.skipped:,}"),
                    *same(f"{gold.coverage:.4f}", f"{gold.syllables_f1:.3f}", f"{gold.reachable_recall:.3f}"),
                    resampled(gold.resampled),
                    (gold.digest, gold.digest),
                ]
                for gold in report.golds
            ],
        ),
        DataTable(
            [
                Column(("spans", "구간"), figure=False),
                *map(Column, (("texts", "텍스트"), ("spans", "구간"), ("skipped", "건너뛴 텍스트"))),
                Column(("resampled", "재표집 단위"), figure=False),
            ],
            [
                [
                    *same(one.name, f"{one.texts:,}", f"{one.spans:,}", f"{one.skipped:,}"),
                    resampled(one.resampled),
                    (one.digest, one.digest),
                ]
                for one in report.spans
            ],
        ),
    ]
    return [table for table in tables if table.rows]
