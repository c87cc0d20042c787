//! A proxy for HTTP and, by `CONNECT`, for anything else, that keeps what it was asked for.

use super::http::{self, lock};
use super::tls::forward;
use std::io::{self, BufReader, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

/// How the proxy treats those who ask.
#[derive(Default)]
pub struct Rules {
    /// What `proxy-authorization` has to be; everybody else gets a 407.
    pub login: Option<String>,
    /// Where the servers are that it is asked for by these names and ports. It knows no others, and
    /// answers 502.
    pub servers: Vec<(&'static str, SocketAddr)>,
}

/// The proxy. It listens on a free port of the loopback interface until it is dropped.
pub struct Proxy {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    asked: Arc<Mutex<Vec<http::Request>>>,
    acceptor: Option<JoinHandle<()>>,
}

impl Proxy {
    /// Starts a proxy.
    pub fn start(rules: Rules) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, asked) = (
            Arc::<AtomicBool>::default(),
            Arc::<Mutex<Vec<_>>>::default(),
        );
        let rules = Arc::new(rules);
        let acceptor = thread::spawn({
            let (stop, asked) = (Arc::clone(&stop), Arc::clone(&asked));
            move || {
                for stream in listener.incoming().flatten() {
                    if stop.load(Ordering::SeqCst) {
                        return;
                    }
                    let (rules, asked) = (Arc::clone(&rules), Arc::clone(&asked));
                    // A client that goes away is its own affair.
                    thread::spawn(move || drop(serve(stream, &rules, &asked)));
                }
            }
        });
        Self {
            address,
            stop,
            asked,
            acceptor: Some(acceptor),
        }
    }

    /// `http://127.0.0.1:PORT`, with what is to stand before the host.
    pub fn url(&self, login: &str) -> String {
        format!("http://{login}{}", self.address)
    }

    /// What it was asked for: heads of `CONNECT`, whole requests of anything else.
    pub fn asked(&self) -> Vec<http::Request> {
        lock(&self.asked).clone()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let woken = TcpStream::connect(self.address).is_ok();
        if let Some(acceptor) = self.acceptor.take().filter(|_| woken) {
            let _ = acceptor.join();
        }
    }
}

fn serve(stream: TcpStream, rules: &Rules, asked: &Mutex<Vec<http::Request>>) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    let Some(mut request) = http::read_request(&mut reader)? else {
        return Ok(());
    };
    lock(asked).push(request.clone());
    let stream = reader.get_mut();
    if rules.login.as_deref() != request.header("proxy-authorization") && rules.login.is_some() {
        return refuse(stream, "407 Proxy Authentication Required");
    }
    request
        .headers
        .retain(|(name, _)| name != "proxy-authorization");
    let whole = request.target.trim_start_matches("http://").to_owned();
    let (name, path) = whole.split_once('/').unwrap_or((&whole, ""));
    let Some((_, to)) = rules.servers.iter().find(|(known, _)| *known == name) else {
        return refuse(stream, "502 Bad Gateway");
    };
    if request.method != "CONNECT" {
        let answer = forward(&request, &format!("/{path}"), *to)?;
        stream.write_all(&answer)?;
        return stream.shutdown(Shutdown::Both);
    }
    let behind = TcpStream::connect(to)?;
    stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")?;
    let (from, back) = (stream.try_clone()?, behind.try_clone()?);
    let there = thread::spawn(move || pump(from, behind));
    pump(back, stream.try_clone()?);
    let _ = there.join();
    Ok(())
}

fn refuse(stream: &mut TcpStream, status: &str) -> io::Result<()> {
    write!(
        stream,
        "HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
    )?;
    stream.shutdown(Shutdown::Both)
}

/// Moves bytes until one side ends, and then ends the other.
fn pump(mut from: TcpStream, mut to: TcpStream) {
    let _ = io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}
