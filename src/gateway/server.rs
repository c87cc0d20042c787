//! The server, in a thread of its own, so that it never delays an agent while the run is busy.

use super::account::{Account, Ledger, SpendLimits, TurnCost};
use super::allow::AllowList;
use super::proxy::{CONNECT, accept};
use super::shared::{Denied, Shared};
use crate::agents::gateway::Route;
use crate::domain::sandbox::DeniedHost;
use crate::http::{Client, Network};
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Arc, Mutex};
use std::thread;
use tokio::sync::{Semaphore, oneshot};

/// The most concurrent requests; further ones wait.
const MAX_REQUESTS: usize = 32;

/// The most concurrent tunnels; further ones are refused.
const MAX_TUNNELS: usize = 256;

/// The most connections at a time; further ones wait to be accepted.
const MAX_CONNECTIONS: usize = 256;

/// The gateway of a run. It serves until it is dropped.
pub struct Gateway {
    shared: Arc<Shared>,
    ledger: Arc<Ledger>,
    #[cfg(target_os = "linux")]
    place: Option<String>,
    /// Dropped with the gateway, which stops the server.
    _stop: oneshot::Sender<()>,
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Gateway")
            .field(&self.shared.address)
            .finish()
    }
}

impl Gateway {
    /// Starts a server on a free port of the loopback interface, which connects to providers through
    /// `network`. With an allow-list it is also a proxy for the listed hosts.
    ///
    /// # Errors
    /// When no port or no thread is available.
    pub fn start(network: &Network, allow: Option<AllowList>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        #[cfg(target_os = "linux")]
        let (place, handed_in) = match &allow {
            Some(_) => super::bridge::place().map(|(name, it)| (Some(name), Some(it)))?,
            None => (None, None),
        };
        let shared = Arc::new(Shared {
            client: Client::new(network, Some(CONNECT)),
            requests: Arc::new(Semaphore::new(MAX_REQUESTS)),
            accounts: Mutex::default(),
            network: network.clone(),
            allow,
            denied: Denied::default(),
            tunnels: Arc::new(Semaphore::new(MAX_TUNNELS)),
            connections: Arc::new(Semaphore::new(MAX_CONNECTIONS)),
            address: listener.local_addr()?,
        });
        let of_server = Arc::clone(&shared);
        thread::Builder::new()
            .name("gateway".into())
            .spawn(move || {
                runtime.block_on(async {
                    #[cfg(target_os = "linux")]
                    if let Some(place) = handed_in {
                        let shared = Arc::clone(&of_server);
                        tokio::spawn(super::bridge::receive_listeners(place, shared));
                    }
                    tokio::select! {
                        _ = stopped => {}
                        () = accept(listener, of_server) => {}
                    }
                });
                // A name lookup in progress must not delay the end.
                runtime.shutdown_background();
            })?;
        Ok(Self {
            shared,
            ledger: Arc::default(),
            #[cfg(target_os = "linux")]
            place,
            _stop: stop,
        })
    }

    /// `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.shared.address)
    }

    /// Its port, in every network namespace that it serves.
    pub fn port(&self) -> u16 {
        self.shared.address.port()
    }

    /// The name of the socket that receives the listener of a child's network namespace from the
    /// launcher.
    pub fn place(&self) -> Option<&str> {
        #[cfg(target_os = "linux")]
        return self.place.as_deref();
        #[cfg(not(target_os = "linux"))]
        None
    }

    /// The hosts that were refused since the last call, and how often.
    pub fn take_denied(&self) -> Vec<DeniedHost> {
        self.shared.denied.take()
    }

    /// Starts a turn with these limits.
    pub fn begin_turn(&self, limits: SpendLimits) {
        self.ledger.begin_turn(limits);
    }

    /// Ends the turn and returns its cost.
    pub fn end_turn(&self) -> TurnCost {
        self.ledger.end_turn()
    }

    /// The account for these keys. The same keys have the same account for the whole run.
    pub fn account(&self, route: &Route) -> Arc<Account> {
        let mut accounts = self.shared.accounts();
        if let Some(known) = accounts.iter().find(|known| known.route == *route) {
            return Arc::clone(known);
        }
        let random = [(); 2].map(|()| uuid::Uuid::new_v4().simple().to_string());
        let token = format!("sprag-{}", random.concat());
        let account = Arc::new(Account {
            token,
            route: route.clone(),
            ledger: Arc::clone(&self.ledger),
        });
        accounts.push(Arc::clone(&account));
        account
    }
}
