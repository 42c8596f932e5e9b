//! REST, SSE and the gateway's WebSocket transport.
