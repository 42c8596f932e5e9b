//! The client commands of the doorstep binary.
