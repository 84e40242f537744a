//! On real API servers.
