//! A service that classifies pictures of digits: `POST /classify` with a PNG file, `GET /health`, `GET /metrics`.
//!
//! Requests are handled by tokio; the model runs on a thread of its own, in batches. This file is about HTTP alone.

mod batcher;
mod metrics;
mod picture;

use std::error::Error;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Serialize;
use tokio::net::TcpListener;

use batcher::{Classifier, Failure, Probabilities};
use metrics::Metrics;

aoti_runtime::include_model!("digits");

/// Largest picture, in bytes.
const LARGEST_BODY: usize = 64 << 10;

/// What handlers share.
struct Service {
    classifier: Classifier,
    metrics: Arc<Metrics>,
}

/// The answer to a picture.
#[derive(Serialize)]
struct Answer {
    digit: usize,
    probability: f32,
    probabilities: Probabilities,
}

/// Serves until `shutdown` is done, then answers what has been asked. The first picture of a batch waits for others for `delay`.
pub async fn serve(
    listener: TcpListener,
    delay: Duration,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<(), Box<dyn Error>> {
    let metrics = Arc::new(Metrics::default());
    let classifier = Classifier::start(delay, Arc::clone(&metrics))?;
    let service = Arc::new(Service { classifier, metrics });
    let router = Router::new()
        .route("/classify", post(classify))
        .route("/health", get(|| async { "ok\n" }))
        .route("/metrics", get(|State(service): State<Arc<Service>>| async move { service.metrics.text() }))
        .layer(DefaultBodyLimit::max(LARGEST_BODY))
        .with_state(service);
    axum::serve(listener, router).with_graceful_shutdown(shutdown).await?;
    Ok(())
}

async fn classify(State(service): State<Arc<Service>>, body: Bytes) -> Response {
    let pixels = match picture::read(&body) {
        Ok(pixels) => pixels,
        Err(error) => {
            service.metrics.refused();
            return (StatusCode::BAD_REQUEST, format!("{error}\n")).into_response();
        }
    };
    match service.classifier.classify(pixels).await {
        Ok(probabilities) => {
            let pairs = probabilities.iter().copied().enumerate();
            let (digit, probability) =
                pairs.fold((0, f32::MIN), |best, pair| if pair.1 > best.1 { pair } else { best });
            Json(Answer { digit, probability, probabilities }).into_response()
        }
        Err(Failure::Busy) => {
            service.metrics.rejected();
            (StatusCode::SERVICE_UNAVAILABLE, "too many pictures are waiting\n").into_response()
        }
        Err(Failure::Model(message)) => {
            (StatusCode::INTERNAL_SERVER_ERROR, format!("{message}\n")).into_response()
        }
    }
}
