//! Starts the service: `image-classifier [ADDRESS]`, by default at 127.0.0.1:8000. Ctrl-C ends it when all requests are answered.

use std::error::Error;
use std::time::Duration;

use tokio::net::TcpListener;

/// How long the first picture of a batch waits for others.
const DELAY: Duration = Duration::from_millis(2);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8000".to_owned());
    let listener = TcpListener::bind(&address).await.map_err(|error| format!("{address}: {error}"))?;
    println!("listening on http://{}", listener.local_addr()?);
    image_classifier::serve(listener, DELAY, async {
        // Without signals there is nothing to wait for.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    })
    .await
}
