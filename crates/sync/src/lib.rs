//! The event log: append, pages, tail, hot ring, retention, epoch.
