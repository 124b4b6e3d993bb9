"""A draft model beside the target: what its tokens mean there, and guesses from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from specdec_cli.core.distribution import Ids
from specdec_cli.core.options import SamplingOptions
from specdec_cli.engine.drafters import CrossVocabularyDrafter, ModelDrafter
from specdec_cli.engine.language_model import LanguageModel
from specdec_cli.engine.llama.context import LlamaContext
from specdec_cli.engine.llama.model import LlamaModel
from specdec_cli.engine.retokenization import Retokenizer
from specdec_cli.engine.vocabulary import Intersection, intersection, match, require_same

MODEL, SELF = "model", "self"  # names of a draft model, and of a low-bit copy of the target


@dataclass(frozen=True, slots=True)
class DraftFile:
    """A draft to load, and the source under which its guesses are counted.

    Attributes:
        optional: nobody asked for it, so that an answer goes on without it where it fails.
    """

    path: Path
    name: str = MODEL
    optional: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Meaning:
    """How a draft's ids translate: `never` drafted, or only what is `shared` by both."""

    never: Ids | None = None
    shared: Intersection | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Draft:
    """A loaded draft model.

    Attributes:
        key: tells its file from others.
        reads: the context, or around it what spares it reading the text.
    """

    name: str
    key: str
    model: LlamaModel
    context: LlamaContext
    reads: LanguageModel
    meaning: Meaning

    @property
    def borrows(self) -> bool:
        """Does it use what the target has read?"""
        return self.reads is not self.context

    def drafter(
        self, target: LlamaModel, sampling: SamplingOptions
    ) -> ModelDrafter | CrossVocabularyDrafter:
        """Guesses in the target's ids, drawn with the request's filters."""
        vocabulary = target.vocabulary
        if self.meaning.shared is not None:
            return CrossVocabularyDrafter(
                self.reads,
                sampling,
                target_vocab=vocabulary.size,
                ends=vocabulary.ends,
                shared=self.meaning.shared,
                retokenizer=Retokenizer(vocabulary, self.model.vocabulary),
                source=self.name,
            )
        return ModelDrafter(
            self.reads,
            sampling,
            target_vocab=vocabulary.size,
            ends=vocabulary.ends,
            never=self.meaning.never,
            source=self.name,
        )

    def reading(self, target: LlamaModel, tokens: Sequence[int]) -> list[int]:
        """A text of the target's ids, in the ids that the draft reads it in."""
        if self.meaning.shared is None:
            return list(tokens)
        return Retokenizer(target.vocabulary, self.model.vocabulary).translate(tokens)


def meaning(
    target: LlamaModel, draft: LlamaModel, *, cross_vocab: bool, notice: Callable[[str], None]
) -> Meaning:
    """Compare the vocabularies, and say what a person should know about the pair.

    Raises:
        IncompatibleModels: they differ, and a draft with another vocabulary was not allowed.
    """
    if draft is target:
        notice("draft and target are the same file: nothing can be gained")
        return Meaning()
    found = match(target.vocabulary, draft.vocabulary)
    if cross_vocab and not found.same:
        shared = intersection(target.vocabulary, draft.vocabulary)
        notice(
            f"the draft has another vocabulary: it can guess {shared.share:.0%} "
            "of the target's tokens"
        )
        return Meaning(shared=shared)
    require_same(found, target_name=target.path.name, draft_name=draft.path.name)
    if count := len(found.differing):
        notice(f"{count} tokens mean something else to the draft: never drafted")
    if draft.parameters > target.parameters:
        notice(
            f"the draft ({draft.description}) is larger than the target "
            f"({target.description}): are they swapped?"
        )
    return Meaning(never=found.differing)
