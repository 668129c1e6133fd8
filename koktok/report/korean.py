"""What adapters and metrics say in English, in Korean for the Korean page.

This file adds: words, notes, units, and what each measure is. Names, signatures and the reason why a row could not run stay as they
are, and so does a note that nobody has translated.
"""

from __future__ import annotations

import re
from typing import Final

KOREAN: Final = {
    "Korean tokenizers": "한국어 토크나이저 비교",
    "human": "사람",
    "silver": "자동",
    "other": "기타",
    "share": "비율",
    "ratio": "비",
    "%": "%",
    "MB/s": "MB/초",
    "bits/char": "비트/글자",
    "bits/token": "비트/토큰",
    "borders/eojeol": "경계/어절",
    "bytes/token": "바이트/토큰",
    "chars/token": "글자/토큰",
    "cuts/char": "분할/글자",
    "cuts/eojeol": "분할/어절",
    "tokens/byte": "토큰/바이트",
    "tokens/char": "토큰/글자",
    "tokens/eojeol": "토큰/어절",
    "tokens/morpheme": "토큰/형태소",
    "tokens/word": "토큰/단어",
}
"""The default title, the standing of a gold corpus, the last kind of border, and the units of the measures."""

_NOTES: Final = (
    (r"spaces are no tokens", "공백은 토큰이 되지 않음"),
    (r"spaces are tokens \((.*)\)", r"공백도 토큰(\1)"),
    (r"one token an eojeol", "어절마다 토큰 하나"),
    (r"one token a character", "글자마다 토큰 하나"),
    (r"one token a jamo", "자모마다 토큰 하나"),
    (r"analyser at run time", "실행할 때 형태소 분석기를 씀"),
    (r"analyser at run time, pure Python", "실행할 때 형태소 분석기를 씀(순수 파이썬)"),
    (r"analyser at run time, an eojeol at a time", "실행할 때 형태소 분석기를 어절마다 씀"),
    (
        r"restored forms are laid on the text, spaces are no tokens",
        "복원된 형태를 본문에 맞춤, 공백은 토큰이 되지 않음",
    ),
    (r"Kiwi at run time", "실행할 때 Kiwi를 씀"),
    (
        r"surface morphemes, a fused syllable stays whole, spaces are no tokens",
        "표면형 형태소, 융합된 음절은 나누지 않음, 공백은 토큰이 되지 않음",
    ),
    (r"spans are looked up in the text, spaces are no tokens", "토큰 위치는 본문에서 찾음, 공백은 토큰이 되지 않음"),
    (r"morphemes are restored forms, spaces are no tokens", "형태소는 원형으로 복원됨, 공백은 토큰이 되지 않음"),
    (
        r"WordPiece: spaces are lost, and a word with an unknown character is one unknown token",
        "WordPiece: 공백은 사라지고, 모르는 글자가 든 어절은 통째로 미등록 토큰",
    ),
    (
        r"input segmented by MeCab-ko (.*), spaces as (.), which are tokens",
        r"입력을 MeCab-ko \1로 나눔, 공백은 \2 토큰",
    ),
    (r"input segmented by MeCab-ko (.*)", r"입력을 MeCab-ko \1로 나눔"),
    (r"a morpheme that is not in the list is unknown", "목록에 없는 형태소는 미등록"),
    (r"input NFKD( \(conjoining jamo\))?", "입력을 NFKD(첫가끝 자모)로 바꿈"),
    (r"drops repeated spaces", "거듭된 공백을 하나로 줄임"),
    (r"normalizes by (.*)", r"\1로 정규화함"),
    (r"a (.*) vocabulary does not keep every text", r"\1 어휘는 일부 글자를 되살리지 못함"),
)
"""Notes, or their parts between semicolons, of the adapters in `koktok.foreign`."""

_UNITS: Final = {
    "document": "문서 {}개",
    "domain": "분야 {}개",
    "block of 50 lines": "50줄 묶음 {}개",
    "block of 50 sentences": "50문장 묶음 {}개",
}

_STABILITY: Final = "바꾸기 전과 뒤의 분할을 비교한 F1. 두 음절이 모두 그대로이고 여전히 이웃인 자리에서만 잽니다."
_CHANGE: Final = "(바꾼 뒤의 토큰 수 − 바꾸기 전의 토큰 수) / 바꾸기 전의 어절 수."
_NOISE: Final = ("drop", "homophone", "laughter", "nfd", "no_spaces", "some_spaces", "typo")

DEFINITIONS: Final = {
    "fertility": "NFC 텍스트의 토큰 수 / 어절 수. 모든 줄을 더한 다음 나눕니다.",
    "morpheme_fertility": "토큰 수 / 정답 형태소 수(융합된 형태소 포함). 채점하지 않는 어절은 양쪽에서 뺍니다.",
    "hangul_fertility": "한글 음절이 하나라도 든 토큰 수 / 한글 음절이 하나라도 든 어절 수.",
    "chars_per_token": "공백을 포함한 NFC 텍스트의 글자 수 / 토큰 수.",
    "bytes_per_token": "공백을 포함한 NFC 텍스트의 UTF-8 바이트 수 / 토큰 수.",
    "tokens_per_char": "토큰 수 / 공백을 포함한 NFC 텍스트의 글자 수.",
    "tokens_per_byte": "토큰 수 / 공백을 포함한 NFC 텍스트의 UTF-8 바이트 수.",
    "coded_size": "토큰 수 · log2(어휘 크기) / 8 / UTF-8 바이트 수. 토큰 번호를 같은 길이로 적었을 때의 크기입니다.",
    "coded_size_gzip": "토큰 수 · log2(어휘 크기) / 8 / 표본을 분야마다 zlib 9단계로 압축한 바이트 수.",
    "coded_size_zstd": "토큰 수 · log2(어휘 크기) / 8 / 표본을 분야마다 zstd 19단계로 압축한 바이트 수.",
    "nsl": "토큰 수 / 같은 줄을 기준 토크나이저로 나눈 토큰 수.",
    "parity": "한국어 줄의 토큰 수 / 뜻이 같은 영어 줄의 토큰 수.",
    "premium": "병렬문의 줄마다 구한 한국어 토큰 수 / 영어 토큰 수의 평균.",
    "english_fertility": "영어 텍스트의 토큰 수 / 띄어 쓴 단어 수.",
    "code_tokens_per_byte": "프로그램 코드의 토큰 수 / 들여쓰기를 포함한 UTF-8 바이트 수.",
    "pcw": "둘 이상의 토큰에 걸친 어절 수 / 어절 수. 공백뿐인 토큰은 세지 않습니다.",
    "strr_nouns": "일상 명사 백여 개 가운데 토큰 하나로 남는 비율. 줄 처음과 공백 뒤에서 각각 확인합니다.",
    "strr_verbs": "‘다’로 끝나는 동사와 형용사 기본형 가운데 토큰 하나로 남는 비율.",
    "strr_endings": "조사와 어미 가운데 토큰 하나로 남는 비율.",
    "unknown_tokens": "미등록 토큰 수 / 토큰 수.",
    "unknown_chars": "미등록 토큰에 든 글자 수 / 공백을 뺀 글자 수.",
    "unknown_eojeols": "미등록 토큰이 한 글자라도 덮는 어절 수 / 어절 수.",
    "fallback_bytes": "`<0x00>`부터 `<0xFF>`까지의 바이트 대체 토큰 수 / 토큰 수.",
    "boundary_f1": "2·적중 / (분할 + 경계). 어절 안 두 음절 사이만 봅니다. 음절 속의 경계(했)와 그 옆의 분할(해|요)은 뺍니다.",
    "boundary_precision": "정답 경계에 놓인 분할 수 / 분할 수. 어절 안 두 음절 사이에서만 잽니다.",
    "boundary_recall": "분할된 정답 경계 수 / 음절 끝에 놓인 정답 경계 수.",
    "boundary_f1_full": "2·적중 / (분할 + 모든 경계). 음절 속의 경계는 맞힐 수 없는 것으로 셉니다.",
    "boundary_recall_full": "분할된 정답 경계 수 / 음절 속의 것까지 포함한 정답 경계 수.",
    "boundary_f1_types": "서로 다른 어절마다 구한 F1의 평균. 분할도 경계도 없는 어절은 뺍니다.",
    "boundary_ceiling": "2·min(분할, 경계) / (분할 + 경계). 분할이나 경계를 모두 맞혔을 때의 F1입니다.",
    "eojeols_exact": "두 음절 사이의 분할이 정답과 똑같은 어절 수 / 채점한 어절 수.",
    "boundary_f1_functional": "조사, 어미, 지정사 앞 경계만으로 구한 F1. 다른 종류의 경계에 놓인 분할은 세지 않습니다.",
    "boundary_f1_macro": "사람이 단 정답 말뭉치(없으면 전부)에서 구한 조사·어미·지정사 앞 경계 F1의 평균. 말뭉치의 크기는 따지지 않습니다.",
    "over_split": "정답 경계가 아닌 자리의 분할 수 / 채점한 어절 수.",
    "under_split": "음절 끝에 있는데 분할되지 않은 정답 경계 수 / 채점한 어절 수.",
    "morpheme_intact": "양 끝이 분할이나 어절 끝이고 안에는 분할이 없는 형태소 수 / 정답 형태소 수.",
    "recall_noun_particle": "체언과 조사 사이(N|J)에서 분할된 경계 수 / 그런 경계 수.",
    "recall_verb_ending": "용언, 접미사, 지정사와 어미 사이(V|E, XS|E, VCP|E)에서 분할된 경계 수 / 그런 경계 수.",
    "recall_ending_ending": "두 어미 사이(었|다)에서 분할된 경계 수 / 그런 경계 수.",
    "recall_suffix_copula": "파생 접미사나 지정사 앞(N|XS, N|VCP)에서 분할된 경계 수 / 그런 경계 수.",
    "recall_compound": "두 명사 사이(N|N)에서 분할된 경계 수 / 그런 경계 수.",
    "recall_headline": "조사와 어미 앞에서 분할된 경계 수 / 그런 경계 수.",
    "recall_copula": "지정사 앞(학생|이다)에서 분할된 경계 수 / 그런 경계 수.",
    "recall_functional": "조사, 어미, 지정사 앞에서 분할된 경계 수 / 그런 경계 수.",
    "recall_by_kind": "정답에 나오는 경계 종류마다 구한 재현율의 평균(기타 제외).",
    "token_f1": "2·(정답 형태소와 똑같은 조각 수) / (조각 수 + 정답 형태소 수). 조각은 두 분할 또는 어절 끝 사이의 부분입니다.",
    "morphscore_1": "조사나 어미 앞의 첫 경계가 분할된 어절 수 / 그런 경계가 있고 토큰이 둘 이상인 어절 수.",
    "morphscore_2": "조사나 어미 앞의 첫 경계가 분할된 어절 수 / 그런 경계가 있는 어절 수.",
    "consistency_f1": "정답 어절 2,000개의 모든 쌍에서 ‘같은 한글 토큰이 있음’으로 ‘같은 형태소가 있음’을 맞히는 F1.",
    "consistency_f1_merged": "은/는, 이/가, 았/었/였 같은 이형태를 한 형태소로 보고 구한 형태 일관성 F1.",
    "stem_consistency": "둘 이상의 서로 다른 어절에 나오는 어간에서, 어간 안과 끝의 분할이 그 어간의 가장 흔한 분할과 같은 어절의 비율.",
    "stem_whole": "어간이 분할로 끝나고 그 안에는 분할이 없는 어절의 비율.",
    "renyi_efficiency": "H₂.₅(p) / log₂ V. H_α = log₂(Σ p^α) / (1 − α), p는 토큰의 비율, V는 전체 어휘 크기입니다.",
    "renyi_efficiency_3": "α = 3으로 구한 레니 효율.",
    "shannon_efficiency": "−Σ p log₂ p / log₂ V.",
    "shannon_entropy": "토큰 비율 p로 구한 −Σ p log₂ p.",
    "percentile_frequency": "나타난 어휘를 빈도순으로 세웠을 때 3%와 83% 사이에 드는 어휘가 차지하는 토큰의 비율.",
    "utilisation": "한 번이라도 나온 어휘 수 / 전체 어휘 수(특수 토큰과 바이트 포함).",
    "frequent_utilisation": "토큰 백만 개에 100번 이상 나온 어휘 수 / 전체 어휘 수.",
    "one_syllable_share": "한글이 꼭 한 음절이고 다른 글자는 많아야 하나인 토큰 수 / 한글이 든 토큰 수.",
    "inner_space_share": "첫 글자와 마지막 글자 사이에 공백이 있는 토큰 수 / 토큰 수.",
    "long_share": "한글이 8음절을 넘는 토큰 수 / 토큰 수.",
    "undecodable_types": "자기 바이트만으로는 올바른 UTF-8이 아닌 어휘 수 / 전체 어휘 수.",
    "split_characters": "한 글자를 나누어 가진 이웃 토큰 쌍의 수 / 글자 수.",
    "reachability": "어휘를 홀로, 또 일곱 가지 문맥에서 인코딩했을 때 다시 나오는 어휘 수 / UTF-8로 읽히는 어휘 수.",
    "round_trip_strict": "decode(encode(줄))이 줄과 똑같은 줄의 비율.",
    "round_trip_nfc": "decode(encode(줄))을 NFC로 바꾸면 줄과 같은 줄의 비율.",
    "round_trip_spaces": "양쪽의 어절을 공백 하나로 이었을 때 되살아나는 줄의 비율.",
    "round_trip_probes": "정해진 어려운 문자열(NFD, 자모, 옛한글, 이모지, 공백, 제어 문자 등) 가운데 되살아나는 비율.",
    "hidden_gaps": "뒤에 다른 어절이 오는 어절 끝 가운데 토큰 안에 파묻힌 자리의 비율.",
    "hidden_borders": "음절 끝의 정답 경계 가운데 토큰 안에 파묻힌 경계의 비율.",
    "context_change": "줄 처음, 다른 낱말 뒤, 괄호 뒤, 따옴표 뒤에서 안쪽 분할이 달라지는 어절의 비율(서로 다른 어절 기준).",
    "context_change_inside": "줄 처음을 빼고, 다른 낱말, 괄호, 따옴표 뒤에서 안쪽 분할이 달라지는 어절의 비율.",
    "fertility_change_all_spaces": _CHANGE,
    **{f"stability_{noise}": _STABILITY for noise in _NOISE},
    **{f"fertility_change_{noise}": _CHANGE for noise in _NOISE},
    "domain_spread": "분야(파일)별 어절당 토큰 수의 최댓값 − 최솟값.",
    "worst_domain": "분야별 어절당 토큰 수의 최댓값 / 전체의 어절당 토큰 수.",
    "throughput": "묶음으로 인코딩할 때 1초에 처리하는 UTF-8 메가바이트, 세 번 가운데 가장 좋은 값.",
    "segmentation_entropy_per_char": "한 줄의 모든 분할에 대한 Unigram 사후 확률의 엔트로피 / 글자 수.",
    "control_injection": "본문 속에 적은 제어 토큰의 철자 가운데 제어 토큰 번호로 인코딩되는 비율.",
    "control_injection_wide": "전각 기호(＜ ＞ ｜ ［ ］ ／)로 적은 제어 토큰이 제어 토큰 번호로 인코딩되는 비율.",
    "ngram_bits": "표본의 5분의 1을 떼어 잰 −Σ log₂ p(토큰) / 글자 수. 크네저-나이 5-gram 모형이며, 미등록 글자마다 16비트를 더합니다.",
    "ngram_bits_equal": "문맥이 8글자쯤 되도록 차수를 1 + round(8 / 토큰당 글자 수)로 정한 n-gram 모형의 글자당 비트 수.",
    "probe_accuracy": "토큰 1-gram과 2-gram을 쓴 로지스틱 회귀로 떼어 둔 텍스트를 옳게 분류한 비율.",
    "probe_macro_f1": "선형 분류기의 부류별 F1의 평균.",
    "probe_no_spaces": "띄어쓰기를 없앤 텍스트에서 잰 선형 분류기의 정확도.",
    "probe_some_spaces": "띄어쓰기를 틀리게 한 텍스트에서 잰 선형 분류기의 정확도.",
    "probe_typo": "자판 오타를 넣은 텍스트에서 잰 선형 분류기의 정확도.",
}
"""What each measure is; where it comes from and its pitfalls are told in English, with `koktok.metrics`."""


def korean_note(note: str) -> str:
    """A note of an adapter in Korean, or as it is.

    Examples
    --------
    >>> korean_note("one token a character; spaces are no tokens")
    '글자마다 토큰 하나; 공백은 토큰이 되지 않음'
    >>> korean_note("normalizes by nmt_nfkc"), korean_note("somebody's own")
    ('nmt_nfkc로 정규화함', "somebody's own")
    """
    found = []
    for part in note.split("; "):
        known = (re.sub(pattern, korean, part) for pattern, korean in _NOTES if re.fullmatch(pattern, part))
        found.append(next(known, part))
    return "; ".join(found)


def korean_units(units: str) -> str:
    """What was resampled, in Korean: the words of `koktok.report.rows.units_of`.

    Examples
    --------
    >>> korean_units("466 blocks of 50 lines (the text); 9 documents (kaist-dev)")
    '50줄 묶음 466개(본문); 문서 9개(kaist-dev)'
    >>> korean_units("1 block of 50 lines (the text)")
    '50줄 묶음 1개(본문)'
    """
    found = []
    for part in units.split("; "):
        matched = re.fullmatch(r"(?:([\d,]+) )?(.*?)(?: \((.*)\))?", part)
        number, name, where = matched.groups() if matched else (None, part, None)
        one = name if number == "1" else name.replace("s", "", 1)
        if name == "blocks of lines":
            found.append("줄 묶음")
        elif number and one in _UNITS:
            place = "" if not where else f"({'본문' if where == 'the text' else where})"
            found.append(_UNITS[one].format(number) + place)
        else:
            found.append(part)
    return "; ".join(found)
