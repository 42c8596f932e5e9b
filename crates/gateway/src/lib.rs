//! Delivery: the window, the runner, the hub, sessions and their handshake.
