"""A model that learns with an exported chat folder ends its turns by itself: minutes, see `-m slow`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import koktok

TALKS = [
    [
        {"role": "user", "content": "안녕하세요?"},
        {"role": "assistant", "content": "반갑습니다. 무엇을 도와드릴까요?"},
        {"role": "user", "content": "날씨가 어때요?"},
        {"role": "assistant", "content": "맑습니다."},
    ],
    [
        {"role": "user", "content": "이름이 뭐예요?"},
        {"role": "assistant", "content": "저는 콕톡입니다."},
        {"role": "user", "content": "고마워요."},
        {"role": "assistant", "content": "천만에요. 또 물어보세요!"},
    ],
]


@pytest.mark.slow
@pytest.mark.parametrize("template", ["chatml", "llama-3"])
def test_a_tiny_llama_stops_at_the_end_of_its_turn(trained: Callable[..., Path], tmp_path: Path, template: str) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed (the extra `train`)")
    from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig, LlamaConfig, LlamaForCausalLM

    folder = tmp_path / "chat"
    done = koktok(
        "export", trained(), "--to", "hf", "--style", "llama", "--chat-template", template, "-o", folder, "-q"
    )
    assert done.returncode == 0, done.stderr
    tokenizer = AutoTokenizer.from_pretrained(folder)
    torch.manual_seed(0)
    sizes = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=len(tokenizer), max_position_embeddings=256, **sizes))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    rows = [tokenizer.apply_chat_template(talk, return_dict=True, return_assistant_tokens_mask=True) for talk in TALKS]
    for _ in range(200):
        for row in rows:
            ids = torch.tensor([row["input_ids"]])
            said = torch.tensor([row["assistant_masks"]], dtype=torch.bool)
            loss = model(input_ids=ids, labels=ids.masked_fill(~said, -100)).loss
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    assert loss.item() < 0.05
    model.generation_config = GenerationConfig.from_pretrained(folder)
    model.save_pretrained(folder)

    again = AutoModelForCausalLM.from_pretrained(folder).eval()
    for talk in TALKS:
        for turn in (1, 3):
            prompt = tokenizer.apply_chat_template(
                talk[:turn], add_generation_prompt=True, return_dict=True, return_tensors="pt"
            )
            made = again.generate(**prompt, max_new_tokens=100, do_sample=False)[0, prompt["input_ids"].shape[1] :]
            assert len(made) < 100
            assert made[-1] == tokenizer.eos_token_id
            assert tokenizer.decode(made, skip_special_tokens=True) == talk[turn]["content"]
