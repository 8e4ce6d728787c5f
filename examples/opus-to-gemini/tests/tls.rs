//! Over TLS: whose certificates are believed, and whose are not.

#![allow(clippy::unwrap_used, reason = "a test may")]

use std::{convert::Infallible, fs, net::SocketAddr, path::PathBuf, process::Output, sync::Arc};

use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::{
    ServerConfig,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
};
use tempfile::TempDir;
use tokio::{net::TcpListener, process::Command};
use tokio_rustls::TlsAcceptor;

const ANSWER: &str = r#"{"choices":[{"message":{"content":"over TLS"},"finish_reason":"stop"}]}"#;

/// A server whose certificate only its own authority vouches for.
struct Private {
    address: SocketAddr,
    folder: TempDir,
}

impl Private {
    async fn start() -> Self {
        let mut authority = CertificateParams::new(Vec::new()).unwrap();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let authority = CertifiedIssuer::self_signed(authority, key).unwrap();
        let key = KeyPair::generate().unwrap();
        let server = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let certificate = server.signed_by(&key, &authority).unwrap();

        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("ca.pem"), authority.pem()).unwrap();

        let provider = rustls::crypto::ring::default_provider();
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let config = ServerConfig::builder_with_provider(Arc::new(provider))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(serve(listener, TlsAcceptor::from(Arc::new(config))));
        Self { address, folder }
    }

    fn ca(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// `chat`, with these settings of trust, in an environment that names the authority as one of
    /// this machine's if it is `known`.
    async fn chat(&self, tls: &str, known: bool) -> Output {
        let file = self.folder.path().join("settings.toml");
        let port = self.address.port();
        let text = format!(
            "[targets.own]\nurl = \"https://localhost:{port}/v1/chat/completions\"\nmodel = \"m\"\n\
             [chains]\ndefault = [\"own\"]\n[failover]\nsends = 1\n[tls]\n{tls}\n"
        );
        fs::write(&file, text).unwrap();
        let mut chat = Command::new(env!("CARGO_BIN_EXE_opus-to-gemini"));
        let none = self.folder.path().join("none.pem");
        fs::write(&none, self.other()).unwrap();
        chat.args(["chat", "--config"]).arg(file).arg("hi");
        chat.env("SSL_CERT_FILE", if known { self.ca() } else { none });
        chat.env_remove("SSL_CERT_DIR");
        chat.output().await.unwrap()
    }

    /// An authority that vouches for nobody here.
    fn other(&self) -> String {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        CertifiedIssuer::self_signed(params, key).unwrap().pem()
    }
}

async fn serve(listener: TcpListener, tls: TlsAcceptor) {
    while let Ok((stream, _)) = listener.accept().await {
        let tls = tls.clone();
        tokio::spawn(async move {
            let stream = tls.accept(stream).await?;
            let answer = service_fn(|request: Request<Incoming>| async {
                request.into_body().collect().await.unwrap();
                let head = Response::builder().header("content-type", "application/json");
                Ok::<_, Infallible>(head.body(Full::<&[u8]>::from(ANSWER.as_bytes())).unwrap())
            });
            let served = http1::Builder::new().serve_connection(TokioIo::new(stream), answer);
            served.await.map_err(std::io::Error::other)
        });
    }
}

fn answered(out: &Output) -> bool {
    out.status.success() && String::from_utf8_lossy(&out.stdout).contains("over TLS")
}

#[tokio::test]
async fn a_private_authority_is_believed_where_a_file_names_it() {
    let server = Private::start().await;
    let told = server.chat("", false).await;
    assert!(!told.status.success());
    let said = String::from_utf8_lossy(&told.stderr).to_lowercase();
    assert!(said.contains("certificate"), "{said}");

    let named = format!("ca_file = {:?}", server.ca());
    let told = server.chat(&named, false).await;
    assert!(answered(&told), "{}", String::from_utf8_lossy(&told.stderr));
}

#[tokio::test]
async fn the_authorities_of_the_machine_are_believed_where_they_are_asked_for() {
    let server = Private::start().await;
    let told = server.chat("roots = \"system\"", true).await;
    assert!(answered(&told), "{}", String::from_utf8_lossy(&told.stderr));
    // Known to the machine or not: the list in the binary is another.
    assert!(!answered(&server.chat("roots = \"bundled\"", true).await));
    assert!(!answered(&server.chat("roots = \"system\"", false).await));
}
