//! The three clients behind one call.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request};
use http_body_util::{BodyExt, Full};
use serde_json::Value;
use tower::ServiceExt;
use tower_spillway_core::{
    Chance, Class, Ledger, Report,
    clock::{self, millis},
};

use super::{
    Attempt, Call, Kind, Settings,
    article::{Article, Breaker, Vendor},
    timeline::Notes,
};
use crate::{
    config::Config,
    fake::{FAKE_ANTHROPIC_KEY, FAKE_GEMINI_KEY, Fakes},
    pipeline::{BuildError, Pipeline, Upstream},
};

/// One of the three.
#[derive(Clone)]
pub(super) enum Client {
    Article(Box<Article>),
    Stack(Pipeline),
}

impl Client {
    pub(super) fn new(
        kind: Kind,
        settings: &Settings,
        fakes: &Fakes,
        chance: &Chance,
        notes: &Notes,
    ) -> Result<Self, BuildError> {
        Ok(match kind {
            Kind::TryOther => Self::Article(article(settings, fakes, None).into()),
            Kind::Breaker => Self::Article(article(settings, fakes, Some(notes)).into()),
            Kind::Stack => Self::Stack(stack(settings, fakes, chance)?),
        })
    }

    /// Makes one call; times are as played.
    pub(super) async fn ask(&self, body: &Value, mut call: Call) -> Call {
        match self {
            Self::Article(article) => article.ask(body, &mut call).await,
            Self::Stack(pipeline) => ask(pipeline, body, &mut call).await,
        }
        call
    }
}

fn article(settings: &Settings, fakes: &Fakes, notes: Option<&Notes>) -> Article {
    let speed = settings.speed.max(1);
    let secs = |n| Duration::from_secs(n) / speed;
    let breaker = |name, failures, open| {
        notes.map(|notes| Breaker::new(name, failures, secs(open), notes.clone()))
    };
    let (opus, gemini) = settings.within;
    let models = Config::interactive().targets;
    let model = |name: &str| {
        models
            .get(name)
            .map(|t| t.model.clone())
            .unwrap_or_default()
    };
    Article::new(vec![
        Vendor {
            name: "opus",
            url: fakes.anthropic.url(),
            key: FAKE_ANTHROPIC_KEY,
            model: model("opus"),
            within: opus / speed,
            breaker: breaker("opus", 5, 30),
        },
        Vendor {
            name: "gemini",
            url: fakes.gemini.url(),
            key: FAKE_GEMINI_KEY,
            model: model("gemini"),
            within: gemini / speed,
            breaker: breaker("gemini", 3, 60),
        },
    ])
}

fn stack(settings: &Settings, fakes: &Fakes, chance: &Chance) -> Result<Pipeline, BuildError> {
    let (opus, gemini) = settings.within;
    let opus = Upstream::opus(FAKE_ANTHROPIC_KEY)
        .url(fakes.anthropic.url())
        .within(opus, opus);
    let gemini = Upstream::gemini(FAKE_GEMINI_KEY)
        .url(fakes.gemini.url())
        .within(gemini, gemini);
    Pipeline::builder()
        .config(Config::interactive().at_speed(settings.speed))
        .target(opus.at_speed(settings.speed))
        .target(gemini.at_speed(settings.speed))
        .chance(chance.clone())
        .build()
}

async fn ask(pipeline: &Pipeline, body: &Value, call: &mut Call) {
    let start = clock::now();
    let ledger = Ledger::new();
    let mut request = Request::new(Full::new(Bytes::from(body.to_string())));
    if let Ok(id) = HeaderValue::from_str(&call.number.to_string()) {
        request.headers_mut().insert("x-call-id", id);
    }
    request.extensions_mut().insert(ledger.clone());
    if let Ok(response) = pipeline.clone().oneshot(request).await {
        let head = millis(clock::now().saturating_duration_since(start));
        let success = response.status().is_success();
        call.ok = response.into_body().collect().await.is_ok() && success;
        call.first_content = call.ok.then_some(head);
    }
    call.latency = millis(clock::now().saturating_duration_since(start));
    fill(call, &ledger.report());
}

fn fill(call: &mut Call, report: &Report) {
    let target = report.target.as_ref().filter(|_| call.ok);
    call.target = target.map(ToString::to_string);
    call.model = report.model.as_deref().filter(|_| call.ok).map(Into::into);
    call.fallback_reason = report.fallback_reason.as_ref().map(ToString::to_string);
    call.attempts.extend(report.attempts.iter().map(|a| {
        Attempt {
            target: a
                .target
                .as_ref()
                .map(ToString::to_string)
                .unwrap_or_default(),
            start: millis(a.start),
            elapsed: millis(a.elapsed),
            class: a.class.as_str().into(),
            status: a.status,
            sent: a.class != Class::Refused,
        }
    }));
}
