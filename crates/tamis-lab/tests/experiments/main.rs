//! Every experiment with quick sizes: each figure agrees with the theory and
//! each verdict is the expected one.
#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

use tamis_lab::experiment::{ALL, Setting, find};
use tamis_lab::report::{Report, Verdict};

fn verdicts(name: &str) {
    let directory = tempfile::tempdir().unwrap();
    let mut report = Report::new(directory.path(), true).unwrap();
    report.run(find(name).unwrap(), &Setting::quick()).unwrap();
    assert!(directory.path().join(format!("{name}.csv")).exists());
    let mut count = 0;
    for (_, finding) in report.findings() {
        count += 1;
        let unexpected = finding.verdict() == Verdict::Unexpected;
        assert!(!unexpected || finding.timed, "{finding:#?}");
    }
    assert!(count > 0);
}

macro_rules! experiments {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                verdicts(&stringify!($name).replace('_', "-"));
            }
        )*

        /// Each experiment has a test above.
        #[test]
        fn all_are_tested() {
            let tested = [$(stringify!($name).replace('_', "-")),*];
            assert_eq!(ALL.each_ref().map(|each| each.name.to_owned()), tested);
        }
    };
}

experiments! {
    bound convexity single region rates trace budget partition variance
    largest memory speed rivals forty lines overload churn tail crisis
    summaries deletions misnamed
}
