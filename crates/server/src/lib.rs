//! The composition root and the doorstep binary.
