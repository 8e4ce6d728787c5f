//! A gRPC client of tonic whose calls are sent again as the server asks (gRFC A6).
//!
//! Status and `grpc-retry-pushback-ms` are read as they are, in the head, and in trailers where no
//! message came before them.
//!
//! Run with `cargo run -p tonic-client -- http://127.0.0.1:50051 name`.

use std::{env, time::Duration};

use tonic::{
    Request, Response, Status,
    body::Body,
    client::{Grpc, GrpcService},
    codegen::http::uri::PathAndQuery,
    transport::{Channel, Endpoint},
};
use tonic_prost::ProstCodec;
use tower::ServiceBuilder;
use tower_http::map_request_body::MapRequestBodyLayer;
use tower_spillway::{
    core::{InvalidConfig, grpc_status::FirstFrameBody},
    prelude::*,
};

/// `message HelloRequest { string name = 1; }`
#[derive(Clone, PartialEq, prost::Message)]
struct HelloRequest {
    #[prost(string, tag = "1")]
    name: String,
}

/// `message HelloReply { string message = 1; }`
#[derive(Clone, PartialEq, prost::Message)]
struct HelloReply {
    #[prost(string, tag = "1")]
    message: String,
}

/// The layers over a channel.
fn stack(
    channel: Channel,
) -> Result<impl GrpcService<Body, ResponseBody = FirstFrameBody<Body>> + Clone, InvalidConfig> {
    Ok(ServiceBuilder::new()
        .layer(CallLayer::new().deadline(Duration::from_secs(20)))
        // tonic's body cannot be cloned.
        .layer(ReplayLayer::new())
        .layer(JitterBackoffLayer::exponential(
            Duration::from_millis(20),
            Duration::from_secs(1),
        )?)
        .layer(RetryAfterLayer::new())
        .layer(AttemptTimeoutLayer::to_head(Duration::from_secs(5)))
        .layer(GrpcStatusLayer::new())
        .layer(MapRequestBodyLayer::new(Body::new))
        .service(channel))
}

/// What tonic's generated clients do in a method.
async fn say_hello<S>(
    service: S,
    request: Request<HelloRequest>,
) -> Result<Response<HelloReply>, Status>
where
    S: GrpcService<Body, ResponseBody = FirstFrameBody<Body>>,
{
    let mut grpc = Grpc::new(service);
    let ready = grpc.ready().await;
    ready.map_err(|e| Status::unavailable(e.into().to_string()))?;
    let path = PathAndQuery::from_static("/helloworld.Greeter/SayHello");
    grpc.unary(request, path, ProstCodec::default()).await
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let mut args = env::args().skip(1);
    let mut next = || args.next().ok_or("give a URL and a name");
    let channel = Endpoint::from_shared(next()?)?.connect_lazy();
    let mut request = Request::new(HelloRequest { name: next()? });
    // Through tonic's `Status` the caller's own ledger is the only way to the report.
    let ledger = Ledger::new();
    request.extensions_mut().insert(ledger.clone());
    let out = say_hello(stack(channel)?, request).await;
    eprintln!("{} sends", ledger.report().sends());
    println!("{}", out?.into_inner().message);
    Ok(())
}

#[cfg(test)]
mod tests;
