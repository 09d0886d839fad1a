"""The wire formats of hosted models: pure functions from requests to bodies, and back.

A format makes the body of a request, merges the events of a streamed answer into the body of a
whole one, and reads a completion from that. Nothing here sends anything.
"""

from numbench.models.formats.base import Format
from numbench.models.formats.chat import ChatFormat
from numbench.models.formats.gemini import GeminiFormat
from numbench.models.formats.messages import MessagesFormat
from numbench.models.formats.responses import ResponsesFormat

FORMATS: dict[str, Format] = {
    "chat": ChatFormat(),
    "responses": ResponsesFormat(),
    "messages": MessagesFormat(),
    "gemini": GeminiFormat(),
}
"""OpenAI's Chat Completions and Responses, Anthropic's Messages, and Google's Gemini."""
