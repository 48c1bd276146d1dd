# SPDX-License-Identifier: MIT
"""Tools that the conformance suite calls, as source text for PUT /v1/tools."""

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAAAAA=="


def test_simple_text() -> dict:
    """One block of text."""
    return {"$mcp": {"content": [{"type": "text", "text": "This is a simple text response for testing."}]}}


def test_image_content() -> dict:
    """One picture."""
    return {"$mcp": {"content": [{"type": "image", "data": PNG, "mimeType": "image/png"}]}}


def test_audio_content() -> dict:
    """One sound."""
    return {"$mcp": {"content": [{"type": "audio", "data": WAV, "mimeType": "audio/wav"}]}}


def test_embedded_resource() -> dict:
    """One resource inside the result."""
    return {"$mcp": {"content": [{"type": "resource", "resource": {
        "uri": "test://embedded-resource", "mimeType": "text/plain", "text": "This is an embedded resource content."}}]}}


def test_multiple_content_types() -> dict:
    """Text, a picture and a resource."""
    return {"$mcp": {"content": [
        {"type": "text", "text": "Multiple content types test:"},
        {"type": "image", "data": PNG, "mimeType": "image/png"},
        {"type": "resource", "resource": {"uri": "test://mixed-content-resource", "mimeType": "application/json",
                                          "text": '{"test":"data","value":123}'}}]}}


def test_error_handling() -> dict:
    """An error that a model can act on."""
    return {"$mcp": {"content": [{"type": "text", "text": "This tool intentionally returns an error for testing"}], "isError": True}}


def test_logging_tool() -> str:
    """Logs nothing: clients are told by the results alone."""
    return "done"


def test_streaming_elicitation() -> str:
    """Asks its client for nothing."""
    return "done"


def test_tool_with_progress() -> str:
    """Tells how far it is, three times."""
    import time

    from sbx import progress
    for done in (0, 50, 100):
        progress(done, 100)
        time.sleep(0.05)
    return "done"
