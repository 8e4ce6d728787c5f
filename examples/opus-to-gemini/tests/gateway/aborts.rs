//! Clients that leave at any moment.

use std::time::Duration;

use opus_to_gemini::fake::Behaviour;
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::sleep,
};
use tower_spillway_core::Chance;

use crate::support::{PLENTY, Served, hello, streamed};

const CALLS: u64 = 400;

/// Of the figures that must be zero once nobody is there, the ones that are not.
fn left_over(status: &Value) -> Vec<String> {
    let mut figures = vec![
        ("in_flight".to_owned(), &status["calls"]["in_flight"]),
        ("waiting".to_owned(), &status["calls"]["waiting"]),
    ];
    for target in status["targets"].as_array().unwrap() {
        figures.push((target["name"].to_string(), &target["in_flight"]));
    }
    let left = figures.into_iter().filter(|(_, figure)| **figure != 0);
    left.map(|(name, _)| name).collect()
}

#[tokio::test]
async fn whenever_a_client_leaves_nothing_of_its_call_stays() {
    let served = Served::start(|config| {
        config.gateway.in_flight = 3;
        config.gateway.queue = 3;
        config.breaker.enabled = false;
    })
    .await;
    let chance = Chance::seeded(7);
    let fake = &served.fakes.anthropic;
    fake.set_latency(Duration::ZERO..=Duration::from_millis(4));
    fake.set_stream(Duration::from_millis(4));
    let mut open = Vec::new();
    for number in 0..CALLS {
        fake.set(match chance.up_to(5) {
            0 => Behaviour::Hang,
            1 => Behaviour::Fail { status: 500 },
            2 => Behaviour::Cut,
            3 => Behaviour::Silent,
            _ => Behaviour::Answer,
        });
        let body = match number % 2 {
            0 => hello().to_string(),
            _ => streamed().to_string(),
        };
        let request = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let part = match chance.up_to(9) {
            0 => request.len() / 2,
            1 => request.len() - 1,
            _ => request.len(),
        };
        let stay = chance.duration_up_to(Duration::from_millis(12));
        let reads = chance.up_to(1) == 1;
        let address = served.address;
        open.push(tokio::spawn(async move {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(&request.as_bytes()[..part]).await.unwrap();
            let left = async {
                let mut piece = [0; 64];
                while reads && stream.read(&mut piece).await.is_ok_and(|n| n > 0) {}
                sleep(PLENTY).await;
            };
            tokio::select! {
                () = left => {}
                () = sleep(stay) => {}
            }
        }));
        // Six or so at one time, as many as there is room for.
        if open.len() >= 6 {
            open.remove(0).await.unwrap();
        }
    }
    for client in open {
        client.await.unwrap();
    }
    // If something stays, this does not end.
    while !left_over(&served.status().await).is_empty() {
        sleep(Duration::from_millis(5)).await;
    }
    served.fakes.anthropic.set(Behaviour::Answer);
    assert_eq!(served.ask().await.status, 200);
}
