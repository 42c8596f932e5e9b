//! How events enter: publish and scheduled publish.
