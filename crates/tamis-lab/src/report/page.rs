//! The page: one HTML file without references to other files.

use super::{Count, Entry, Finding, Limit, Report, Verdict, escape, number};
use crate::claims::{self, Answer, Claim};
use crate::experiment::PAPERS;

/// Beside the style of the planner, which has the colours.
const STYLE: &str = include_str!("style.css");

pub(super) fn html(report: &Report) -> String {
    let mut out = format!(
        "<!doctype html>\n<html lang=en><head><meta charset=utf-8>\
         <meta name=viewport content=\"width=device-width,initial-scale=1\">\
         <title>tamis: the claims of the papers</title>\n\
         <style>\n{}{STYLE}</style></head><body>\n\
         <h1>The claims of the papers, and our figures</h1>\n",
        tamis_explorer::STYLE,
    );
    let total = Count::of(report.findings().map(|(_, finding)| finding));
    let sizes = if report.quick {
        " Quick sizes: the intervals are wider than those of a full run."
    } else {
        ""
    };
    out += &format!(
        "<p>{} experiments, tamis {}: {total}.{sizes}</p>\n\
         <p class=soft>Each experiment has fixed seeds: the same command \
         prints the same figures, except times. Intervals are two-sided, of \
         99.9 % unless stated.</p>\n<dl>",
        report.entries.len(),
        env!("CARGO_PKG_VERSION"),
    );
    for (sign, paper) in PAPERS {
        out += &format!("<dt>{sign}</dt><dd>{}</dd>", escape(paper));
    }
    out += "</dl>\n<nav>\n<a href=\"#planner\">Planner</a>\n";
    for Entry { experiment, outcome, .. } in &report.entries {
        let count = Count::of(&outcome.findings);
        out += &format!(
            "<a href=\"#{}\">{} <span class=soft>{count}</span></a>\n",
            experiment.name,
            escape(experiment.title),
        );
    }
    out += "<a href=\"#claims\">All claims</a>\n</nav>\n";
    out += &tamis_explorer::planner();
    for entry in &report.entries {
        out += &section(entry);
    }
    out += &claims_table(report);
    out + "</body></html>\n"
}

fn section(entry: &Entry) -> String {
    let Entry { experiment, outcome, charts, elapsed, command } = entry;
    let mut out = format!(
        "<h2 id=\"{}\">{}</h2>\n<p class=soft>{}</p>\n<p>{}</p>\n",
        experiment.name,
        escape(experiment.title),
        escape(experiment.source),
        escape(experiment.about),
    );
    out += "<div class=figures>\n";
    for (title, svg) in charts {
        out += &format!(
            "<figure>{svg}<figcaption>{}</figcaption></figure>\n",
            escape(title)
        );
    }
    out += "</div>\n";
    for finding in &outcome.findings {
        out += &card(finding);
    }
    out += &format!(
        "<p class=soft>Command: <code>{}</code> ({:.1} s)</p>\n",
        escape(command),
        elapsed.as_secs_f64(),
    );
    out += "<details><summary>Parameters and data</summary>\n<dl>";
    for (name, value) in &outcome.parameters {
        let (name, value) = (escape(name), escape(value));
        out += &format!("<dt>{name}</dt><dd>{value}</dd>");
    }
    out += "</dl>\n";
    for table in &outcome.tables {
        out += &table.html();
    }
    out + "</details>\n"
}

fn card(finding: &Finding) -> String {
    let verdict = finding.verdict();
    let class = match verdict {
        Verdict::Reproduced => "reproduced",
        Verdict::Differs => "differs",
        Verdict::NotReproducible => "lost",
        Verdict::Unexpected => "unexpected",
    };
    let mut out = format!(
        "<div class=\"card {class}\"><span class=verdict>{verdict}</span>: \
         {} <span class=soft>{}</span><dl>",
        escape(&finding.quantity),
        finding.claims.join(", "),
    );
    let mut entry = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            out += &format!("<dt>{name}</dt><dd>{}</dd>", escape(&value));
        }
    };
    let relation = match finding.limit {
        None => "",
        Some(Limit::AtMost) => "at most ",
        Some(Limit::AtLeast) => "at least ",
    };
    let published = finding.published.map(number);
    entry("published", published.map(|figure| relation.to_owned() + &figure));
    let interval = finding.interval.zip(finding.interval_kind);
    let interval = interval.map_or_else(String::new, |([low, high], kind)| {
        format!(" [{}, {}] ({kind})", number(low), number(high))
    });
    let ours = finding.ours.map(|ours| number(ours) + &interval);
    entry("ours", ours);
    entry("theory", finding.predicted.map(number));
    let deviation = finding.deviation().map(|deviation| {
        format!(
            "{}{} %",
            if deviation < 0.0 { "" } else { "+" },
            number((deviation * 1e5).round() / 1e3)
        )
    });
    entry("deviation", deviation);
    entry("reason", finding.reason.map(str::to_owned));
    let joined = |list: &[String]| (!list.is_empty()).then(|| list.join("; "));
    entry("holds", joined(&finding.checks));
    entry("does not hold", joined(&finding.broken));
    out + "</dl></div>\n"
}

/// Every claim, with its answer.
fn claims_table(report: &Report) -> String {
    let claims = claims::all().unwrap_or_default();
    let mut out = String::from(
        "<h2 id=claims>All claims</h2>\n<p>Every definition, theorem, figure \
         and number of the papers, and its place here.</p>\n\
         <table class=claims><tr><th>claim</th><th>source</th>\
         <th>statement</th><th>answer</th></tr>\n",
    );
    for claim in claims {
        out += &format!(
            "<tr id=\"{0}\"><td>{0}</td><td>{1}</td><td>{2}</td><td>{3}</td>\
             </tr>\n",
            claim.id,
            escape(&claim.source),
            escape(&claim.statement),
            answer(report, &claim),
        );
    }
    out + "</table>\n"
}

fn answer(report: &Report, claim: &Claim) -> String {
    let note = claim
        .note
        .as_deref()
        .map_or_else(String::new, |note| format!(" {}", escape(note)));
    let answer = match &claim.answer {
        Answer::Experiment(name) => {
            let mut verdicts: Vec<String> = report
                .findings()
                .filter(|(_, found)| found.claims.contains(&&*claim.id))
                .map(|(_, finding)| finding.verdict().to_string())
                .collect();
            verdicts.dedup();
            let state = match verdicts.is_empty() {
                true => "not run".to_owned(),
                false => verdicts.join(", "),
            };
            format!("<a href=\"#{name}\">{name}</a>: {state}.")
        }
        Answer::Test(test) => format!("Test <code>{}</code>.", escape(test)),
        Answer::Code(place) => {
            format!("Implemented: <code>{}</code>.", escape(place))
        }
        Answer::Reason(reason) => escape(reason),
    };
    answer + &note
}
