//! The flags of the controller about what it serves over HTTP.

use clap::Args;

#[derive(Debug, Args)]
pub struct HttpArgs {
    /// The address to serve probes, metrics and the HTTP API on; port 0 picks a free port and logs it
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        default_value = "127.0.0.1:8080",
        env = "BELLWETHER_LISTEN",
        hide_env = true
    )]
    pub listen: String,

    /// Let every client that can reach the address read all bound objects over HTTP, without a token
    #[arg(
        long,
        value_name = "true|false",
        default_value_t = false,
        num_args = 0..=1,
        default_missing_value = "true",
        action = clap::ArgAction::Set,
        env = "BELLWETHER_ANONYMOUS_READ",
        hide_env = true
    )]
    pub anonymous_read: bool,
}
