"""Messages -> token ids, by the model's own chat template."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from jinja2 import TemplateError
from llama_cpp.llama_chat_format import Jinja2ChatFormatter

from specdec_cli.engine.llama.model import LlamaModel, LlamaVocabulary
from specdec_cli.errors import ModelFileError, UsageError

Message: TypeAlias = Mapping[str, str]
"""`role` (system, user or assistant) and `content`."""

# For a file without a template: a token that only one family uses, and that family's template.
CHATML = (
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
GEMMA = (
    "{{ bos_token }}{% for m in messages %}"
    "{% if m.role == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
    "{{ '<start_of_turn>' + ('model' if m.role == 'assistant' else m.role) + '\n'"
    " + m.content + '<end_of_turn>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %}"
)
LLAMA3 = (
    "{{ bos_token }}{% for m in messages %}"
    "{{ '<|start_header_id|>' + m.role + '<|end_header_id|>\n\n' + m.content + '<|eot_id|>' }}"
    "{% endfor %}{% if add_generation_prompt %}"
    "{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}"
)
KNOWN_MARKERS = {
    "<|im_start|>": ("ChatML", CHATML),
    "<start_of_turn>": ("Gemma", GEMMA),
    "<|start_header_id|>": ("Llama 3", LLAMA3),
}


class ChatTemplate:
    """The template of one model, rendered in Jinja's sandbox.

    Raises:
        ModelFileError: the file has none, none can be guessed, or it is not valid Jinja.
    """

    def __init__(self, model: LlamaModel) -> None:
        self._vocabulary = model.vocabulary
        self.notice = ""
        template = model.chat_template
        if template is None:
            family, template = _guess(model)
            self.notice = (
                f"{model.path.name} has no chat template; its tokens look like {family}'s, "
                "so that one is used (run --raw uses none)"
            )
        try:
            self._formatter = Jinja2ChatFormatter(
                template,
                bos_token=self._vocabulary.text(self._vocabulary.bos),
                eos_token=self._vocabulary.text(self._vocabulary.eos),
            )
        except TemplateError as error:
            raise ModelFileError(
                f"the chat template of {model.path.name} is broken",
                why=_one_line(error),
                fix="use --raw and write the model's markers yourself",
            ) from error

    def tokens(self, messages: Sequence[Message], *, begun: str = "") -> list[int]:
        """Ids of the conversation up to where the assistant speaks, one BOS if the model wants it.

        What a person typed never becomes a control token: where a message spells one, the
        template is rendered around a placeholder and the message is tokenised apart, as text.

        Args:
            begun: what the assistant has already said of its next message.
        """
        segments = self._segments(messages)
        if begun and self._spells_control_token(begun):
            segments.append((begun, True))
        elif begun:  # cut into tokens together with what stands before, as a model reads it
            text, typed = segments.pop()
            segments.append((text + begun, typed))
        ids: list[int] = []
        for text, typed in segments:
            ids += self._vocabulary.tokenize(text, special=not typed)
        if self._vocabulary.adds_bos and ids[:1] != [self._vocabulary.bos]:
            ids.insert(0, self._vocabulary.bos)
        return ids

    def _segments(self, messages: Sequence[Message]) -> list[tuple[str, bool]]:
        """The rendered text in parts: (text, was it typed by a person?)."""
        typed: dict[str, str] = {}
        safe: list[Message] = []
        for message in messages:
            content = message["content"]
            if self._spells_control_token(content):
                placeholder = secrets.token_hex(16)
                core = content.strip()  # blanks stay outside: some templates trim them
                typed[placeholder] = core
                message = {**message, "content": content.replace(core, placeholder, 1)}
            safe.append(message)
        parts = [(self._render(safe), False)]
        for placeholder, content in typed.items():
            parts = [
                segment
                for text, is_typed in parts
                for segment in _around(text, is_typed, placeholder, content)
            ]
        return parts

    def _spells_control_token(self, text: str) -> bool:
        tokenize = self._vocabulary.tokenize
        return tokenize(text, special=True) != tokenize(text, special=False)

    def _render(self, messages: Sequence[Message]) -> str:
        try:
            return str(self._formatter(messages=list(messages)).prompt)
        except Exception as error:  # a template is a program from a file: anything can happen
            why = _one_line(error)
            if "system" in why.lower() and any(m["role"] == "system" for m in messages):
                raise UsageError(
                    "this model's chat template takes no system text",
                    why=why,
                    fix="put the instruction into the prompt instead of --system",
                ) from error
            raise ModelFileError(
                "the model's chat template failed",
                why=why,
                fix="use --raw and write the model's markers yourself",
            ) from error


def raw_tokens(vocabulary: LlamaVocabulary, text: str) -> list[int]:
    """Ids of `text` as it stands, control tokens included, one BOS if the model wants it."""
    ids = vocabulary.tokenize(text, special=True)
    if vocabulary.adds_bos and ids[:1] != [vocabulary.bos]:
        ids.insert(0, vocabulary.bos)
    return ids


def _around(text: str, is_typed: bool, placeholder: str, content: str) -> list[tuple[str, bool]]:
    """A part cut at a placeholder, with the real content between."""
    pieces: list[tuple[str, bool]] = []
    for i, piece in enumerate(text.split(placeholder)):
        if i:
            pieces.append((content, True))
        if piece:
            pieces.append((piece, is_typed))
    return pieces


def _guess(model: LlamaModel) -> tuple[str, str]:
    texts = set(model.vocabulary.texts)
    for marker, (family, template) in KNOWN_MARKERS.items():
        if marker.encode() in texts:
            return family, template
    raise ModelFileError(
        f"{model.path.name} has no chat template",
        why="it is probably a base model, made to continue text and not to answer",
        fix="use --raw to give it the prompt as it is",
    )


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
