use std::time::Duration;

use tower::{Service, ServiceBuilder, service_fn};
use tower_spillway::{
    core::{Detached, Failure},
    prelude::*,
};

fn serve(_: impl Service<u8>) {}

fn classify(_: Result<&u8, Failure<'_>>) -> Class {
    Class::Success
}

fn main() -> Result<(), BoxError> {
    let budget = RetryBudgetLayer::per_call(Duration::from_secs(1), 2)?;
    let client = service_fn(|n: u8| async move { Ok::<_, BoxError>(n) });
    serve(
        ServiceBuilder::new()
            .layer(budget.adapter(Detached(classify)))
            .service(client),
    );
    Ok(())
}
