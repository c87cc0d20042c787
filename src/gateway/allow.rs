//! The allow-list of hosts.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The hosts that may be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowList(Vec<Host>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Host {
    Named(String),
    /// Every name with this suffix, which starts with a dot.
    Below(String),
    Address(IpAddr),
}

impl AllowList {
    /// Parses names, addresses, and names with `*.` in front, which match all names below.
    pub fn of(hosts: &[String]) -> Self {
        let hosts = hosts.iter().map(|host| {
            let host = plain(host);
            match (address(&host), host.strip_prefix('*')) {
                (Some(address), _) => Host::Address(address),
                (None, Some(rest)) => Host::Below(rest.to_owned()),
                (None, None) => Host::Named(host),
            }
        });
        Self(hosts.collect())
    }

    /// Whether a request for this name or address is allowed.
    pub(super) fn admits(&self, host: &str) -> bool {
        let host = plain(host);
        let asked = address(&host);
        self.0.iter().any(|allowed| match allowed {
            Host::Address(allowed) => asked == Some(*allowed),
            Host::Named(name) => asked.is_none() && *name == host,
            Host::Below(end) => {
                asked.is_none() && host.len() > end.len() && host.ends_with(end.as_str())
            }
        })
    }

    /// Whether a connection to a resolved address is allowed. A name server must not be able to redirect
    /// a name to this machine or its network, so a private address must be on the list itself.
    pub(super) fn may_connect(&self, to: IpAddr) -> bool {
        let to = to.to_canonical();
        is_public(to) || self.0.contains(&Host::Address(to))
    }
}

/// The normalized form of a host: lower case, without the brackets of an address and a final dot.
fn plain(host: &str) -> String {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host.trim_end_matches('.').to_ascii_lowercase()
}

fn address(host: &str) -> Option<IpAddr> {
    host.parse::<IpAddr>()
        .ok()
        .map(|address| address.to_canonical())
}

fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [first, second, ..] = address.octets();
    let is_shared = first == 100 && (64..128).contains(&second);
    // Clouds offer services for the machine itself on these addresses.
    let is_of_cloud = matches!(address.octets(), [192, 0, 0, _] | [168, 63, 129, 16]);
    !(is_of_cloud
        || address.is_loopback()
        || address.is_private()
        || address.is_link_local()
        || address.is_broadcast()
        || address.is_multicast()
        || is_shared
        || first == 0
        || first >= 240)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let parts = address.segments();
    // IPv4 addresses inside of IPv6 addresses that are translated on the way.
    let embedded = match parts {
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => Some((high, low)),
        _ => None,
    };
    if let Some((high, low)) = embedded {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        return is_public_v4(Ipv4Addr::new(a, b, c, d));
    }
    // Unique local, link-local and site-local addresses, locally translated ones (NAT64), and Teredo.
    let is_local = parts[0] & 0xfe00 == 0xfc00
        || parts[0] & 0xff80 == 0xfe80
        || parts[..2] == [0x64, 0xff9b]
        || parts[..2] == [0x2001, 0];
    let is_plain_v4 = parts[..6] == [0; 6];
    !(address.is_loopback()
        || address.is_unspecified()
        || address.is_multicast()
        || is_local
        || is_plain_v4)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(hosts: &[&str]) -> AllowList {
        let hosts: Vec<String> = hosts.iter().map(|&host| host.to_owned()).collect();
        AllowList::of(&hosts)
    }

    #[test]
    fn a_host_is_asked_for_by_a_name_that_is_allowed() {
        let list = list(&["Example.com", "*.crates.io", "10.1.2.3", "[2001:db8::1]"]);
        for host in [
            "example.com",
            "EXAMPLE.COM.",
            "static.crates.io",
            "a.b.crates.io",
            "10.1.2.3",
            "::ffff:10.1.2.3",
            "[2001:db8::1]",
        ] {
            assert!(list.admits(host), "{host}");
        }
        for host in [
            "www.example.com",
            "example.com.evil.net",
            "crates.io",
            "evilcrates.io",
            ".crates.io",
            "10.1.2.4",
            "167838211",
            "0x0a.1.2.3",
            "127.0.0.1",
            "localhost",
            "",
        ] {
            assert!(!list.admits(host), "{host}");
        }
        assert!(!AllowList::of(&[]).admits("example.com"));
    }

    #[test]
    fn a_name_leads_to_no_place_nearby_that_is_not_allowed_itself() {
        let list = list(&["example.com", "10.1.2.3"]);
        for address in [
            "93.184.216.34",
            "2606:2800::1",
            "10.1.2.3",
            "64:ff9b::5db8:d822",
        ] {
            assert!(list.may_connect(address.parse().unwrap()), "{address}");
        }
        for address in [
            "127.0.0.1",
            "127.9.9.9",
            "0.0.0.0",
            "10.1.2.4",
            "192.168.1.1",
            "172.16.0.1",
            "169.254.169.254",
            "100.100.100.200",
            "168.63.129.16",
            "192.0.0.192",
            "fec0::1",
            "64:ff9b:1::a9fe:a9fe",
            "2001:0:1::1",
            "224.0.0.1",
            "255.255.255.255",
            "::1",
            "::",
            "::ffff:169.254.169.254",
            "::7f00:1",
            "fe80::1",
            "fd00:ec2::254",
            "ff02::1",
            "64:ff9b::a9fe:a9fe",
            "2002:7f00:1::1",
        ] {
            assert!(!list.may_connect(address.parse().unwrap()), "{address}");
        }
    }
}
