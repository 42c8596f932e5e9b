//! What tests are made of: conformance suite, fake clock, processes, sockets, histories.
