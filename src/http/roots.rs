//! The trusted certificates: Mozilla's, which are built in, and this machine's.

use super::Fault;
use rustls::{ClientConfig, RootCertStore};
use rustls_native_certs::{CertificateResult, load_certs_from_paths, load_native_certs};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// The variable with a file of root certificates.
pub(super) const FILE: &str = "SSL_CERT_FILE";
/// The variable with directories of root certificates, separated by colons.
const DIR: &str = "SSL_CERT_DIR";

/// The numbers of trusted certificates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trusted {
    /// Root certificates that are part of this program.
    pub built_in: usize,
    /// Further root certificates.
    pub added: usize,
    /// The variables that name them; empty for the machine's own store.
    pub variables: Vec<&'static str>,
}

/// The loaded certificates.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) config: Arc<ClientConfig>,
    pub(super) trusted: Trusted,
}

/// The sources of root certificates, which are loaded when first needed.
#[derive(Debug)]
pub(super) struct Roots {
    file: Option<PathBuf>,
    dirs: Option<OsString>,
    loaded: OnceLock<Result<Loaded, Fault>>,
}

impl Roots {
    pub(super) fn of(var: &dyn Fn(&str) -> Option<OsString>) -> Self {
        Self {
            file: var(FILE).map(PathBuf::from),
            dirs: var(DIR),
            loaded: OnceLock::new(),
        }
    }

    /// The TLS settings of every connection. As in OpenSSL, the variables replace the machine's own
    /// store. They never replace the built-in root certificates.
    pub(super) fn load(&self) -> Result<&Loaded, Fault> {
        let loaded = self.loaded.get_or_init(|| self.read());
        loaded.as_ref().map_err(Clone::clone)
    }

    fn read(&self) -> Result<Loaded, Fault> {
        let mut store = RootCertStore {
            roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
        };
        let built_in = store.len();
        let mut variables = Vec::new();
        if let Some(file) = &self.file {
            variables.push(FILE);
            let found = load_certs_from_paths(Some(file), None);
            if add(&mut store, found, FILE, file)? == 0 {
                let shown = file.display();
                let why = "in which there is no certificate in PEM format";
                return Err(Fault(format!("{FILE} names {shown}, {why}")));
            }
        }
        let dirs = self.dirs.iter().flat_map(std::env::split_paths);
        for dir in dirs.filter(|dir| !dir.as_os_str().is_empty()) {
            variables.push(DIR);
            let found = load_certs_from_paths(None, Some(&dir));
            add(&mut store, found, DIR, &dir)?;
        }
        variables.dedup();
        if variables.is_empty() {
            // A small image has no store, and unreadable parts of a store are skipped.
            store.add_parsable_certificates(load_native_certs().certs);
        }
        let trusted = Trusted {
            built_in,
            added: store.len().saturating_sub(built_in),
            variables,
        };
        let config = config(store)?;
        Ok(Loaded { config, trusted })
    }
}

/// The TLS settings with these root certificates.
pub(super) fn config(store: RootCertStore) -> Result<Arc<ClientConfig>, Fault> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Fault(format!("TLS cannot be set up: {error}")))?;
    let config = config.with_root_certificates(store).with_no_client_auth();
    Ok(Arc::new(config))
}

/// Adds the certificates from a variable's path. Returns how many were usable.
fn add(
    store: &mut RootCertStore,
    found: CertificateResult,
    variable: &str,
    path: &Path,
) -> Result<usize, Fault> {
    if let Some(error) = found.errors.first() {
        let shown = path.display();
        return Err(Fault(format!(
            "the certificates of {variable}={shown} cannot be read: {error}"
        )));
    }
    Ok(store.add_parsable_certificates(found.certs).0)
}
