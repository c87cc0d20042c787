//! Certificates of an authority of the test's own, and servers that show them.

use super::http::{self, lock};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io::{self, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

/// An authority that nobody trusts by itself.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    /// A new one.
    pub fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        Self { issuer }
    }

    /// Writes its certificate to a file, as `SSL_CERT_FILE` takes it.
    pub fn write(&self, path: &Path) -> PathBuf {
        std::fs::write(path, self.issuer.as_ref().pem()).unwrap();
        path.to_path_buf()
    }

    /// What a server needs that is to be taken for this host.
    fn server(&self, host: &str) -> Arc<ServerConfig> {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![host.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap();
        Arc::new(config)
    }
}

/// A server over TLS in front of a plain one. It listens on a free port of the loopback interface
/// until it is dropped.
pub struct TlsServer {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    heads: Arc<Mutex<Vec<http::Request>>>,
    acceptor: Option<JoinHandle<()>>,
}

impl TlsServer {
    /// A server with a certificate for `host` that hands every request on to `behind`, which closes
    /// after each answer.
    pub fn start(authority: &Authority, host: &str, behind: SocketAddr) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, heads) = (
            Arc::<AtomicBool>::default(),
            Arc::<Mutex<Vec<_>>>::default(),
        );
        let config = authority.server(host);
        let acceptor = thread::spawn({
            let (stop, heads) = (Arc::clone(&stop), Arc::clone(&heads));
            move || {
                for stream in listener.incoming().flatten() {
                    if stop.load(Ordering::SeqCst) {
                        return;
                    }
                    let (config, heads) = (Arc::clone(&config), Arc::clone(&heads));
                    // Who does not trust the certificate goes away.
                    thread::spawn(move || drop(serve(stream, config, behind, &heads)));
                }
            }
        });
        Self {
            address,
            stop,
            heads,
            acceptor: Some(acceptor),
        }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The requests that came through TLS.
    pub fn requests(&self) -> Vec<http::Request> {
        lock(&self.heads).clone()
    }
}

impl Drop for TlsServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let woken = TcpStream::connect(self.address).is_ok();
        if let Some(acceptor) = self.acceptor.take().filter(|_| woken) {
            let _ = acceptor.join();
        }
    }
}

fn serve(
    stream: TcpStream,
    config: Arc<ServerConfig>,
    behind: SocketAddr,
    heads: &Mutex<Vec<http::Request>>,
) -> io::Result<()> {
    let connection = ServerConnection::new(config).map_err(io::Error::other)?;
    let mut reader = BufReader::new(StreamOwned::new(connection, stream));
    if let Some(request) = http::read_request(&mut reader)? {
        lock(heads).push(request.clone());
        let answer = forward(&request, &request.target, behind)?;
        reader.get_mut().write_all(&answer)?;
    }
    let tls = reader.get_mut();
    tls.conn.send_close_notify();
    tls.flush()?;
    tls.sock.shutdown(Shutdown::Both)
}

/// Sends a request on and returns the whole answer, head included.
pub fn forward(request: &http::Request, target: &str, to: SocketAddr) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(to)?;
    let mut head = format!("{} {target} HTTP/1.1\r\n", request.method);
    for (name, value) in &request.headers {
        if !matches!(name.as_str(), "content-length" | "transfer-encoding") {
            head += &format!("{name}: {value}\r\n");
        }
    }
    head += &format!("content-length: {}\r\n\r\n", request.body.len());
    stream.write_all(head.as_bytes())?;
    stream.write_all(&request.body)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(answer)
}
