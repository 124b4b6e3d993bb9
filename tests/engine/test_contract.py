"""`logits` is a pure function of its tokens, whatever was asked before: the cache is only a memo."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pytest
from conftest import parse_steps
from hypothesis import given, settings
from hypothesis import strategies as st

from specdec_cli.engine.language_model import Interrupted, LanguageModel
from specdec_cli.engine.llama.model import LlamaModel
from specdec_cli.errors import EvaluationError
from tests.engine.conftest import context
