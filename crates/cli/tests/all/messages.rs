//! Wrong invocations: each ends with its status, one line that says what is wrong, and the hint
//! that helps. One line a case; add yours to [`CASES`].

use crate::common::{names, run, text};

/// Status, arguments, a part of the error, and a part of the hint (`-` for no hint, nothing for
/// any). In the arguments `@VOLE`, `@COT`, `@OPE` and `@MAT` stand for the rest of a valid call of
/// a sender that listens, `@SENDS` and `@GETS` for the begin of one of a sender and of a receiver
/// of rows; `@OUT` for a place for output, `@FULL` for a folder with a stranger's file, `@FILE`
/// for a file of text, `@ID` for an identity, `@PRINT` for its fingerprint, `@NPY` and `@CSV` for
/// numbers, `@TWO` for two columns of one name, `@QUOTE` for a quote without end.
const CASES: &str = "\
2 | pis | unrecognized subcommand 'pis' | 'psi'
2 | lokup | unrecognized subcommand | 'lookup'
2 | vol | unrecognized subcommand | 'vole'
2 | kegen | unrecognized subcommand | 'keygen'
2 | --nonsense | unexpected argument '--nonsense' | --help
2 | bench | volery-bench | -
2 | vole @VOLE --n 1000 | --n |
2 | vole @VOLE --rign fp61 | --rign | '--ring'
2 | vole @VOLE --ring fp62 | --ring |
2 | vole @VOLE --security none | --security |
2 | vole @VOLE --log yaml | --log |
2 | vole @VOLE --timeout 0 | a time is at least one second |
2 | vole @VOLE --timeout soon | 'soon' is not a time, such as 90 |
2 | vole @VOLE --timeout 1h30 | '1h30' is not a time |
2 | vole @VOLE --timeout -1 | unexpected argument '-1' |
2 | vole @VOLE --wait 0s | at least one second |
2 | vole @VOLE --wait 5w | '5w' is not a time |
2 | vole @VOLE --wait 99999999999d | too large |
2 | vole @VOLE --threads 0 | --threads |
2 | vole @VOLE --threads many | --threads |
2 | vole @VOLE --quiet -v | cannot be used with | --help
2 | vole @VOLE --report /proc/volery-report | --report |
2 | vole @VOLE --report @FULL | --report | -
2 | vole @VOLE --link fast | --link |
2 | vole @VOLE --set b99 | --set |
2 | vole @VOLE --allow-group-readable-identity=1 | --allow-group-readable-identity |
2 | vole --role sender --listen 127.0.0.1:0 --out @OUT --n 1e99 | '1e99' is too large |
2 | vole --role sender --listen 127.0.0.1:0 --out @OUT --n 1.5 | '1.5' is not a count, such as 1000000 |
2 | vole --role sender --listen 127.0.0.1:0 --out @OUT --n 2^41 | the most in one run |
2 | vole --role sender --listen 127.0.0.1:0 --out @OUT --n ten | 'ten' is not a count |
2 | vole --role sender --listen 127.0.0.1:0 --out @OUT --n -5 | '-5' is not a count |
2 | vole --role sender --listen 127.0.0.1:0 --out @OUT --n 10m | '10m' is not a count |
2 | vole --role sender --listen 127.0.0.1:0 --out @OUT --n 2^40 | --n: the output needs | another disk
2 | vole --role sender --listen 127.0.0.1:0 --out @FULL --n 5 | is not empty | --force
2 | vole --role sender --listen 127.0.0.1:0 --out @OUT/in/it --n 5 | --out | mkdir -p
2 | vole --role both --listen 127.0.0.1:0 --out @OUT --n 5 | possible values: sender, receiver |
2 | vole --role sender --out @OUT --n 5 | one of them is required | --connect HOST:PORT
2 | vole --role sender --out @OUT --n 5 --listen 127.0.0.1:0 --connect 127.0.0.1:1 | only one of them | --listen HOST:PORT
2 | vole --role sender --out @OUT --n 5 --listen 7000 | '7000' is not HOST:PORT | 127.0.0.1:7000
2 | vole --role sender --out @OUT --n 5 --connect localhost | 'localhost' is not HOST:PORT | 127.0.0.1:7000
2 | vole --role sender --out @OUT --n 5 --connect localhost:http | is not HOST:PORT | for example
2 | vole --role sender --out @OUT --n 5 --connect localhost:70000 | is not HOST:PORT | for example
2 | vole --role sender --out @OUT --n 5 --listen 0.0.0.0:0 | is not on the loopback interface | volery keygen
2 | vole --role sender --out @OUT --n 5 --connect 192.0.2.1:7000 | is not on the loopback interface | --identity DIR --peer
4 | vole --role sender --out @OUT --n 5 --wait 1s --connect no-such-name.invalid:7000 | did not resolve | --wait TIME
4 | vole --role sender --out @OUT --n 5 --wait 1s --connect 127.0.0.1:1 | no peer listened on 127.0.0.1:1 | --wait TIME
4 | vole --role sender --out @OUT --n 5 --wait 1s --listen 127.0.0.1:0 | no peer connected | --wait TIME
2 | vole @VOLE --identity @ID | --peer: required with --identity | fingerprint
2 | vole @VOLE --peer @PRINT | --identity: required with --peer | volery keygen
2 | vole @VOLE --identity @ID --peer @PRINT | party's own --identity | ask it
2 | vole @VOLE --identity @ID --peer @ID/fingerprint.txt | party's own --identity | ask it
2 | vole @VOLE --identity @ID --peer @FILE | the file holds no fingerprint |
2 | vole @VOLE --identity @ID --peer @OUT | there is no file of this name |
2 | vole @VOLE --identity @ID --peer abcd-efgh | --peer |
2 | cot @COT --ring fp61 | --ring |
2 | cot @COT --set b12 --noise uniform | --set |
2 | cot --role receiver --listen 127.0.0.1:0 --out @OUT --n 5 --delta @NPY | only the sender |
1 | cot @COT --delta @FILE | not an .npy file |
1 | cot @COT --delta @OUT | No such file |
1 | vole @VOLE --identity @FULL --peer @PRINT | there is no identity | volery keygen
2 | ope --role sender --listen 127.0.0.1:0 | --input: required at the sender |
2 | ope @OPE --point 3 | --point: only for the receiver | -
2 | ope @OPE --out x.npy | --out: only for the receiver |
1 | ope --role sender --listen 127.0.0.1:0 --input @FILE | ends in neither .csv nor .npy |
1 | ope --role sender --listen 127.0.0.1:0 --input @OUT.csv | No such file |
2 | ope --role receiver --listen 127.0.0.1:0 | exactly one of them is required |
2 | ope --role receiver --listen 127.0.0.1:0 --points @CSV | --out: required |
2 | ope --role receiver --listen 127.0.0.1:0 --point 3 --points @CSV | cannot be used with |
2 | ope --role receiver --listen 127.0.0.1:0 --point 2305843009213693951 | is not below 2^61 - 1 |
4 | ope @OPE --wait 1 | no peer connected | --wait TIME
2 | matvec --role sender --listen 127.0.0.1:0 | --input |
1 | matvec --role sender --listen 127.0.0.1:0 --input @FILE | not an .npy file | numpy.save
2 | matvec @MAT --out x.npy | the result goes to the receiver | --result
2 | matvec @MAT --ring real | --ring: real takes float64 |
2 | matvec @MAT --result nobody | --result |
2 | psi @SENDS | --key | --help
1 | psi @SENDS --key mail | no column \"mail\"; the columns are \"coefficient\", \"point\" | -
1 | psi @SENDS --key point:emial | no normaliser 'emial' | names of normalisers
1 | psi @SENDS --key point:e164=ZZ | 'ZZ' is no region | names of normalisers
1 | psi @SENDS --key point:e164 | 'e164' needs the region | names of normalisers
1 | psi @SENDS --key point:date=%Q | no '%Q' in date formats |
1 | psi @SENDS --key point:lower+ | no normaliser '' |
1 | psi @SENDS --key point:float | no normaliser 'float' | integer, decimal
2 | psi @SENDS --key \"point | a quote does not close |
2 | psi @SENDS --key point --left | unexpected argument '--left' | --help
2 | psi @SENDS --key point --out @OUT.csv | the sender gets no rows; remove --out | --both
2 | psi @SENDS --key point --buckets 0 | give a whole number from 1 to 16384 |
2 | psi @SENDS --key point --buckets 16385 | give a whole number from 1 to 16384 |
2 | psi @SENDS --key point --memory 10XB | '10XB' is not a size, such as 2GiB |
2 | psi @SENDS --key point --memory 1MB | bytes, but may take only 1000000 | allow more memory
2 | psi @SENDS --key point --duplicates some | choose keep, error or dedup |
2 | psi @SENDS --key point --empty-keys ignore | error or skip |
2 | psi @SENDS --key point --peer-rows 5 | --dry-run |
2 | psi @SENDS --key point --both --security malicious | not available with --both | remove --both
2 | psi @SENDS --key point --both --protocol dh | to the receiver only | vole-low
2 | psi @SENDS --key point --protocol kkrt --security malicious | semi-honest peers only | --security semi-honest
2 | psi @SENDS --key point --protocol vole --link 1Gbit,1ms | the same on every link | only auto
2 | psi @SENDS --key point --delimiter xx | one ASCII character |
1 | psi @SENDS --key point --resume @FILE | File exists |
1 | psi --role sender --listen 127.0.0.1:0 --input @TWO --key id | columns 1 and 2 have the same name, \"id\" | rename one
1 | psi --role sender --listen 127.0.0.1:0 --input @QUOTE --key id | a quote that opens in row 1 | written twice
1 | psi --role sender --listen 127.0.0.1:0 --input @OUT.csv --key id | No such file |
2 | psi @GETS --key point | the receiver needs an output file |
2 | psi @GETS --key point --out @OUT.xyz | does not say what kind of file | .parquet
2 | psi @GETS --key point --out @CSV | is the input file | never overwritten
2 | psi @GETS --key point --out - --report - | - is the output file | another file
2 | lookup @SENDS --key point | --value: required at the sender |
2 | lookup @SENDS --key point --value coefficient --left | remove --left at the sender |
1 | lookup @SENDS --key point --value c | no column \"c\" |
2 | lookup @GETS --key point --value coefficient --out @OUT.csv | remove --value at the receiver | --value-name
2 | lint @CSV | --key | --help
1 | lint @OUT.csv --key point | No such file |
1 | lint @CSV --key nope | no column \"nope\" |
1 | lint @CSV --key point:e164=D | 'D' is no region |
1 | lint @QUOTE --key id | never closes | written twice
1 | lint @TWO --key id | have the same name | rename one
2 | keygen | --out |
2 | keygen --out @FULL | is not empty | choose another folder
2 | keygen --out @OUT --days 0 | --days |
2 | keygen --out @OUT --days 4000 | --days |
2 | keygen --out @OUT --timeout 5 | unexpected argument '--timeout' |
2 | keygen --out @OUT --threads 2 | unexpected argument '--threads' |
2 | demo --n 67108865 | the demo makes at most | volery vole
2 | demo --n many | 'many' is not a count |
2 | verify | SENDER |
1 | verify @OUT @OUT | u.npy |
2 | verify @FULL | RECEIVER |
2 | params nonsense | unrecognized subcommand |
";

#[test]
fn wrong_invocations_are_answered_with_what_is_wrong_and_a_hint() {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| text(&place.path().join(name)).to_owned();
    std::fs::create_dir(path("full")).unwrap();
    std::fs::write(path("full/thesis.tex"), "years of work").unwrap();
    std::fs::write(path("file"), "not a folder").unwrap();
    std::fs::write(path("two.csv"), "id,id\n1,2\n").unwrap();
    std::fs::write(path("quote.csv"), "id,name\n1,\"Ada\n").unwrap();
    std::fs::write(path("polynomial.csv"), "coefficient,point\n5,1\n7,2\n").unwrap();
    let header = "{'descr': '<u8', 'fortran_order': False, 'shape': (1, 2), }";
    let array = format!("\u{93}NUMPY\u{1}\0\u{76}\0{header:117}\n");
    let array: Vec<u8> = array.chars().map(|byte| byte as u8).collect();
    std::fs::write(path("a.npy"), [array, vec![1; 16]].concat()).unwrap();
    let made = run(&["keygen", "--out", &path("id"), "--quiet"]);
    let print = made.stdout.trim().to_owned();
    let before = names(place.path());

    let (sender, listen) = ("--role sender --listen 127.0.0.1:0", "--listen 127.0.0.1:0");
    let names_of = [
        ("@VOLE", format!("{sender} --n 5 --out @OUT")),
        ("@COT", format!("{sender} --n 5 --out @OUT")),
        ("@OPE", format!("{sender} --input @CSV")),
        ("@MAT", format!("{sender} --input @NPY")),
        ("@SENDS", format!("{sender} --input @CSV")),
        ("@GETS", format!("--role receiver {listen} --input @CSV")),
        ("@OUT", path("out")),
        ("@FULL", path("full")),
        ("@FILE", path("file")),
        ("@PRINT", print),
        ("@ID", path("id")),
        ("@NPY", path("a.npy")),
        ("@CSV", path("polynomial.csv")),
        ("@TWO", path("two.csv")),
        ("@QUOTE", path("quote.csv")),
    ];
    let mut wrong = Vec::new();
    for case in CASES.lines() {
        let parts: Vec<_> = case.split('|').map(str::trim).collect();
        let [status, call, error, hint] = parts[..] else {
            panic!("{case}");
        };
        let call =
            names_of.iter().fold(call.to_owned(), |call, (name, value)| call.replace(name, value));
        let ended = run(&call.split_whitespace().collect::<Vec<_>>());
        let line = |start| ended.stderr.lines().find_map(|line| line.strip_prefix(start));
        let errors = ended.stderr.matches("error: ").count();
        let hint_is_right = match (hint, line("hint: ")) {
            ("", _) | ("-", None) => true,
            (_, said) => said.is_some_and(|said| said.contains(hint)),
        };
        let error_is_right = line("error: ").is_some_and(|said| said.contains(error));
        let is_right = ended.status == Some(status.parse().unwrap())
            && errors == 1
            && error_is_right
            && hint_is_right
            && ended.stdout.is_empty();
        if !is_right {
            wrong.push(format!("{case}\n  {:?}\n{}", ended.status, ended.stderr));
        }
        assert_eq!(names(place.path()), before, "{case}: left files behind");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(CASES.lines().count() >= 60);
}

#[test]
fn a_run_that_fails_has_a_log_of_json_and_a_report() {
    let place = tempfile::tempdir().unwrap();
    let out = text(&place.path().join("out")).to_owned();
    let call =
        "ope --role receiver --point 3 --listen 127.0.0.1:0 --wait 1s --log json -v --report -";
    let ended = run(&call.split(' ').collect::<Vec<_>>());
    assert_eq!(ended.status, Some(4), "{ended:?}");
    let lines: Vec<serde_json::Value> =
        ended.stderr.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for line in &lines {
        let time = line["time"].as_str().unwrap();
        assert!(time.len() == 20 && time.ends_with('Z'), "{line}");
        assert!(line["level"].is_string() && line["message"].is_string());
        assert!(line.as_object().unwrap().contains_key("phase"));
    }
    let last = lines.last().unwrap();
    assert_eq!((&last["level"], &last["status"]), (&"error".into(), &4.into()));
    assert_eq!(last["phase"], "connecting");
    assert!(last["hint"].as_str().unwrap().contains("--wait"));
    let report: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((&report["protocol"], &report["role"]), (&"ope".into(), &"receiver".into()));
    assert_eq!((&report["status"], &report["error"]), (&4.into(), &last["message"]));
    assert_eq!(report["phases"][0]["name"], "connecting");
    assert!(report["phases"][0]["seconds"].as_f64().unwrap() >= 0.9);
    assert_eq!(report["revealed"].as_array().unwrap().len(), 0);
    assert!(report["date"].as_str().unwrap().starts_with("20"));

    // Text: the phases are lines also without a terminal, and -vv says when.
    let call = format!("vole --role sender --n 1 --out {out} --listen 127.0.0.1:0 --wait 1");
    for (more, wanted) in
        [("-v", "volery: connecting begins\n"), ("-vv", " s: connecting begins\n")]
    {
        let ended = run(&call.split(' ').chain([more]).collect::<Vec<_>>());
        assert!(ended.stderr.contains(wanted), "{ended:?}");
        assert!(ended.stderr.contains("waiting for the peer to connect, for at most 1s"));
    }
}
