"""GGUF files that the tests write: tiny models of a few kinds, and files that are none.

The vocabulary is sentencepiece's with a token for every byte, so a character outside ASCII is
several tokens. A model with a `script` says its tokens in a circle, whatever it was asked, so a
test knows every token of the answer; without one the weights are random.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import gguf
import numpy as np

WIDTH, LAYERS, HEADS, CONTEXT = 64, 2, 2, 512
UNKNOWN, BOS, EOS, FIRST_BYTE, FIRST_PIECE = 0, 1, 2, 3, 259
PIECES = ("▁", "he", "the", "▁the", "in", "an", "<|im_start|>", "<|im_end|>")
CHATML = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
IM_START, IM_END = FIRST_PIECE + 6, FIRST_PIECE + 7
NORMAL, CONTROL, BYTE = gguf.TokenType.NORMAL, gguf.TokenType.CONTROL, gguf.TokenType.BYTE

Token = str | int  # a piece of its own, or an id


def byte_ids(text: str | bytes) -> list[int]:
    """The byte tokens of a text, one for each of its bytes."""
    return [FIRST_BYTE + b for b in (text.encode() if isinstance(text, str) else text)]


def write_tiny(
    path: Path,
    *,
    seed: int = 0,
    script: Sequence[Token] = (),
    slips: Sequence[Token] = (),
    template: str | None = CHATML,
    markers: bool = True,
    add_bos: bool = True,
    renamed: Mapping[int, str] | None = None,
    extra_tokens: int = 0,
    architecture: str = "llama",
    width: int = WIDTH,
) -> Path:
    """A model of two layers; equal arguments give equal bytes.

    Args:
        script: what it says, over and over; the same token must not stand in it twice.
        slips: tokens of the script after which it begins again, as a draft that is wrong there.
        markers: does the vocabulary have ChatML's control tokens?
        renamed: other texts for some ids.
        extra_tokens: padding tokens at the end of the vocabulary.
        architecture: `llama` or `mamba`; a model of any other name cannot be loaded.
    """
    tokens, types = _vocabulary(script, markers, renamed or {}, extra_tokens)
    follower = _followers(tokens, script, slips)
    writer = gguf.GGUFWriter(path, architecture)
    _add_shape(writer, width)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([-float(i) for i in range(len(tokens))])
    writer.add_token_types(types)
    writer.add_bos_token_id(BOS)
    writer.add_eos_token_id(EOS)
    writer.add_unk_token_id(UNKNOWN)
    writer.add_add_bos_token(add_bos)
    writer.add_add_space_prefix(False)
    if template is not None:
        writer.add_chat_template(template)
    tensors = _mamba if architecture == "mamba" else _llama
    _finish(writer, tensors(np.random.default_rng(seed), len(tokens), width, follower))
    return path


def write_with_vocabulary_of(path: Path, model: Path, *, seed: int = 0) -> Path:
    """A random model that shares a real one's vocabulary: a draft that guesses nothing right."""
    reader = gguf.GGUFReader(model)
    writer = gguf.GGUFWriter(path, "llama")
    _add_shape(writer, WIDTH)
    size = 0
    for name, field in reader.fields.items():
        if not name.startswith("tokenizer."):
            continue
        value, kind = field.contents(), field.types[0]
        if kind == gguf.GGUFValueType.ARRAY:
            writer.add_array(name, value)
        else:
            writer.add_key_value(name, value, kind)
        if name == "tokenizer.ggml.tokens":
            size = len(value)
    _finish(writer, _llama(np.random.default_rng(seed), size, WIDTH, {}))
    return path


def _vocabulary(
    script: Sequence[Token], markers: bool, renamed: Mapping[int, str], extra: int
) -> tuple[list[str], list[int]]:
    """Token texts and their types."""
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *PIECES]
    types = [gguf.TokenType.UNKNOWN, CONTROL, CONTROL, *[BYTE] * 256, *[NORMAL] * len(PIECES)]
    if markers:
        types[IM_START] = types[IM_END] = CONTROL
    else:
        tokens[IM_START], tokens[IM_END] = "▁in", "▁an"
    own = [_spelled(token) for token in script if isinstance(token, str)]
    own = [token for token in dict.fromkeys(own) if token not in tokens]
    padding = [f"[pad{i}]" for i in range(extra)]
    tokens += [*own, *padding]
    types += [NORMAL] * (len(own) + len(padding))
    for token, text in renamed.items():
        tokens[token] = text
    return tokens, [int(kind) for kind in types]


def _spelled(text: str) -> str:
    return text.replace(" ", "▁")


Followers = dict[int, int]  # token -> what a model with a script says after it


def _followers(tokens: list[str], script: Sequence[Token], slips: Sequence[Token]) -> Followers:
    ids = [tokens.index(_spelled(t)) if isinstance(t, str) else t for t in script]
    assert len(set(ids)) == len(ids), "a script goes on from its last token alone"
    after = dict(zip(ids, [*ids[1:], *ids[:1]], strict=True))
    wrong = {tokens.index(_spelled(t)) if isinstance(t, str) else t for t in slips}
    return {token: ids[0] if token in wrong else next for token, next in after.items()}


def _add_shape(writer: gguf.GGUFWriter, width: int) -> None:
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(width)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(2 * width)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(width // HEADS)
    if writer.arch == "mamba":
        writer.add_ssm_conv_kernel(4)
        writer.add_ssm_inner_size(2 * width)
        writer.add_ssm_state_size(16)
        writer.add_ssm_time_step_rank(8)


Tensors = Iterator[tuple[str, np.ndarray]]


def _ends(rng: np.random.Generator, size: int, width: int, follower: Followers) -> Tensors:
    """What tokens become at the bottom, and how tokens are read off at the top."""
    embedding = rng.standard_normal((size, width))
    output = rng.standard_normal((size, width)) * 0.5
    if follower:  # a token's embedding, unchanged by the layers, points at the token after it
        output[:] = 0
        for token, after in follower.items():
            output[after] += embedding[token]
        others = np.setdiff1d(np.arange(size), list(follower))
        embedding[others] = embedding[list(follower)[-1]]  # after anything else it begins
    yield "token_embd", embedding
    yield "output_norm", np.ones(width)
    yield "output", output


def _llama(rng: np.random.Generator, size: int, width: int, follower: Followers) -> Tensors:
    yield from _ends(rng, size, width, follower)
    quiet = 0.0 if follower else 1.0

    def matrix(rows: int, columns: int) -> np.ndarray:
        return rng.standard_normal((rows, columns)) * (2 / columns) ** 0.5

    for layer in range(LAYERS):
        block = f"blk.{layer}."
        yield block + "attn_norm", np.ones(width)
        for name in ("attn_q", "attn_k", "attn_v"):
            yield block + name, matrix(width, width)
        yield block + "attn_output", matrix(width, width) * quiet
        yield block + "ffn_norm", np.ones(width)
        yield block + "ffn_gate", matrix(2 * width, width)
        yield block + "ffn_up", matrix(2 * width, width)
        yield block + "ffn_down", matrix(width, 2 * width) * quiet


def _mamba(rng: np.random.Generator, size: int, width: int, follower: Followers) -> Tensors:
    yield from _ends(rng, size, width, follower)
    quiet = 0.0 if follower else 1.0
    inner, state, rank, kernel = 2 * width, 16, 8, 4
    for layer in range(LAYERS):
        block = f"blk.{layer}."
        yield block + "attn_norm", np.ones(width)
        yield block + "ssm_in", rng.standard_normal((2 * inner, width)) * 0.2
        yield block + "ssm_conv1d", rng.standard_normal((inner, kernel)) * 0.5
        yield block + "ssm_conv1d.bias", np.zeros(inner)
        yield block + "ssm_x", rng.standard_normal((rank + 2 * state, inner)) * 0.1
        yield block + "ssm_dt", rng.standard_normal((inner, rank)) * 0.1
        yield block + "ssm_dt.bias", np.zeros(inner)
        yield block + "ssm_a.", -np.tile(np.arange(1.0, state + 1), (inner, 1))
        yield block + "ssm_d.", np.ones(inner)
        yield block + "ssm_out", rng.standard_normal((width, inner)) * 0.2 * quiet


def _finish(writer: gguf.GGUFWriter, tensors: Tensors) -> None:
    for name, values in tensors:
        if name.endswith("."):  # these two stand without `.weight`
            name = name[:-1]
        elif not name.endswith(".bias"):
            name += ".weight"
        writer.add_tensor(name, values.astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_ten_bytes(path: Path) -> Path:
    path.write_bytes(b"ten bytes!")
    return path


def write_web_page(path: Path) -> Path:
    path.write_text("<!DOCTYPE html><html><body>404: no such model</body></html>\n" * 20)
    return path


def write_cut(path: Path, model: Path, size: int = 1_000_000) -> Path:
    """The first bytes of a real model, as an interrupted download leaves them."""
    with model.open("rb") as whole:
        path.write_bytes(whole.read(size))
    return path


def write_empty_header(path: Path) -> Path:
    """A valid header of nothing at all."""
    path.write_bytes(struct.pack("<4sIQQ", b"GGUF", 3, 0, 0))
    return path
