"""The language model: any OpenAI-compatible endpoint, or one started inside this process."""

from rag.chat_model import ChatModel, Message, Reply
from rag.llm.openai_chat import OpenAIChat
from rag.llm.opening import open_chat

__all__ = ["ChatModel", "Message", "OpenAIChat", "Reply", "open_chat"]
