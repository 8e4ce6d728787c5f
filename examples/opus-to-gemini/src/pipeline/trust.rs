//! Whose certificates targets may show.

use std::{path::Path, sync::Arc};

use rustls::{
    RootCertStore,
    pki_types::{CertificateDer, pem::PemObject},
};

use super::error::BuildError;
use crate::config::{Roots, Tls};

/// The list that a file names, and the certificates that it adds.
pub(super) fn roots(tls: &Tls) -> Result<Arc<RootCertStore>, BuildError> {
    let mut store = RootCertStore::empty();
    match tls.roots {
        Roots::Bundled => store.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
        Roots::System => {
            // Some of a machine's certificates are broken, as a rule; the others do.
            let found = rustls_native_certs::load_native_certs().certs;
            store.add_parsable_certificates(found);
            if store.is_empty() {
                return Err(BuildError::NoRoots);
            }
        }
    }
    if !tls.ca_file.is_empty() {
        add_file(&mut store, &tls.ca_file)?;
    }
    Ok(Arc::new(store))
}

fn add_file(store: &mut RootCertStore, path: &str) -> Result<(), BuildError> {
    let wrong = |reason: String| BuildError::BadCaFile {
        path: path.to_owned(),
        reason,
    };
    let certificates = CertificateDer::pem_file_iter(Path::new(path));
    let certificates = certificates
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| wrong(error.to_string()))?;
    if certificates.is_empty() {
        return Err(wrong("there is no certificate in it".into()));
    }
    for certificate in certificates {
        store
            .add(certificate)
            .map_err(|error| wrong(error.to_string()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_file(text: &str) -> Result<Arc<RootCertStore>, BuildError> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        roots(&Tls {
            roots: Roots::Bundled,
            ca_file: file.path().display().to_string(),
        })
    }

    #[test]
    fn a_file_that_adds_nobody_is_an_error() {
        for (text, says) in [
            ("no pem at all", "no certificate in it"),
            (
                "-----BEGIN CERTIFICATE-----\n%%%\n-----END CERTIFICATE-----\n",
                "base64",
            ),
            (
                "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
                "certificate",
            ),
        ] {
            let said = with_file(text).unwrap_err().to_string();
            assert!(said.contains(says), "{text:?}: {said}");
        }
        let missing = Tls {
            roots: Roots::Bundled,
            ca_file: "/does/not/exist.pem".into(),
        };
        assert!(matches!(roots(&missing), Err(BuildError::BadCaFile { .. })));
    }
}
