"""Three short lists for single-token retention: everyday nouns, dictionary forms of verbs, particles and endings.

Written for this suite; fixed, because a share of a list means something only while the list stays the same.
"""

from __future__ import annotations

from typing import Final

NOUNS: Final = (
    "사람 나라 시간 마음 집 학교 친구 가족 아이 어머니 아버지 물 밥 길 말 글 눈 손 머리 나무 바다 산 하늘 땅 불 꽃 새 개 고양이 책 "
    "문제 방법 이유 결과 사회 정부 경제 문화 역사 과학 기술 교육 건강 환경 음식 음악 영화 사진 전화 회사 시장 가격 돈 은행 병원 약 "
    "의사 학생 선생님 공부 시험 대학 연구 정보 자료 컴퓨터 인터넷 프로그램 서비스 자동차 버스 지하철 비행기 여행 도시 시골 동네 거리 "
    "아침 점심 저녁 오늘 내일 어제 올해 작년 봄 여름 가을 겨울 날씨 비 바람 구름 생각 기억 사랑 행복 슬픔 희망 꿈 미래 과거 현재"
)
"""Nouns, between spaces."""

VERBS: Final = (
    "하다 되다 있다 없다 가다 오다 보다 먹다 마시다 자다 일어나다 앉다 서다 걷다 뛰다 읽다 쓰다 듣다 말하다 묻다 알다 모르다 배우다 "
    "가르치다 사다 팔다 주다 받다 만들다 열다 닫다 놓다 찾다 잃다 얻다 살다 죽다 만나다 헤어지다 웃다 울다 크다 작다 많다 적다 좋다 "
    "나쁘다 높다 낮다 길다 짧다 덥다 춥다 예쁘다 아프다 빠르다 느리다 어렵다 쉽다 새롭다"
)
"""Verbs and adjectives in their dictionary form, between spaces."""

ENDINGS: Final = (
    "은 는 이 가 을 를 에 에서 에게 한테 으로 로 와 과 도 만 까지 부터 보다 처럼 마다 조차 의 이나 이다 입니다 습니다 었다 았다 "
    "했다 한다 는다 고 지만 면서 어서 아서 니까 면 려고 는데 은데 던 을까 네요 어요 아요 세요 겠다"
)
"""Particles and endings, between spaces."""
