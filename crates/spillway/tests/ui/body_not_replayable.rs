use http::{Request, Response};
use hyper::body::Incoming;
use tower::{Service, ServiceBuilder, service_fn};
use tower_spillway::prelude::*;

fn serve(_: impl Service<Request<Incoming>>) {}

fn main() {
    let client = service_fn(|_: Request<Incoming>| async {
        Ok::<_, BoxError>(Response::new(String::new()))
    });
    serve(
        ServiceBuilder::new()
            .layer(JitterBackoffLayer::new())
            .service(client),
    );
}
