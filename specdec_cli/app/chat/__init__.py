"""Chatting: conversations, where they are kept, and talking to a model in turns."""
