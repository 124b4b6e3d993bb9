"""Stream an answer from Python, and see what speculation did.

python examples/stream.py TARGET.gguf DRAFT.gguf "Why is the sky blue?"
"""

import sys
from pathlib import Path

from specdec_cli.app.draft_models import DraftFile
from specdec_cli.app.generate import Answer, AnswerOptions, Token, answer
from specdec_cli.app.session import LoadOptions, Session
from specdec_cli.engine.llama.chat_template import ChatTemplate

target, draft, prompt = sys.argv[1:]
with Session(LoadOptions(Path(target), (DraftFile(Path(draft)),), draft_tokens=4)) as session:
    ids = ChatTemplate(session.model).tokens([{"role": "user", "content": prompt}])
    for event in answer(session, ids, AnswerOptions(seed=1, max_tokens=64)):
        if isinstance(event, Token):
            print(event.text, end="", flush=True)
        elif isinstance(event, Answer):
            found = event.statistics
            print(f"\n{found.accepted}/{found.drafted} accepted, {found.histogram} by pass")
