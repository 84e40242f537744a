//! Reserves free loopback ports.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use anyhow::{Context, Result, bail};
use rustix::{
    fd::OwnedFd,
    net::{AddressFamily, SocketAddrAny, SocketFlags, SocketType, bind, getsockname, socket_with, sockopt},
};

/// A port that no other process on this machine can take while this value lives, whether or not its server
/// runs.
///
/// A server that is killed and started again must find its port free, also while a second test run picks
/// ports. So a socket that is bound but does not listen holds the port, and the server shares it
/// (`SO_REUSEPORT`). While the server is down, connections are refused.
pub(crate) struct Port {
    number: u16,
    _socket: OwnedFd,
}

impl Port {
    pub(crate) fn reserve() -> Result<Self> {
        let reserve = || -> Result<Self> {
            let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
            sockopt::set_socket_reuseport(&socket, true)?;
            bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0))?;
            let bound: SocketAddrAny = getsockname(&socket)?;
            let Ok(SocketAddr::V4(address)) = SocketAddr::try_from(bound) else {
                bail!("the socket is not bound to an IPv4 address");
            };
            Ok(Self { number: address.port(), _socket: socket })
        };
        reserve().context("cannot get a free port on 127.0.0.1")
    }

    pub(crate) fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.number).into()
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_reserved_port_refuses_connections_and_other_servers() {
        let port = Port::reserve().unwrap();
        assert_eq!(
            TcpStream::connect(port.address()).unwrap_err().kind(),
            std::io::ErrorKind::ConnectionRefused
        );
        assert!(TcpListener::bind(port.address()).is_err(), "a server that does not share the port");
    }
}
