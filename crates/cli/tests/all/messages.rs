//! Wrong invocations: each ends with its status, one line that says what is wrong, and the hint
//! that helps. One line a case; add yours to [`CASES`].

use std::os::unix::fs::PermissionsExt as _;

use crate::common::pair::PLANTED;
use crate::common::{names, run, text};

/// Status, arguments, parts of the error with ` .. ` between them, and a part of the hint (`-` for
/// no hint, nothing for any). In the arguments `@VOLE`, `@COT`, `@OPE` and `@MAT` stand for the
/// rest of a valid call of a sender that listens, `@SENDS` and `@GETS` for the begin of one of a
/// sender and of a receiver of rows, `@KEYS` for that of a sender whose key, in the file `@IN`, no
/// message may show; `@OUT` for a place for output, `@FULL` for a folder with a stranger's file,
/// `@WEB` for the begin of one of a gateway for browsers, `@FILE` for a file of text, `@PEM` for
/// one that its owner alone reads, `@XLSX` for one of a kind that is not known, `@DEVICE` for none,
/// `@ID` for an identity, `@PRINT` for its fingerprint, `@SLIP` for one with a typing error,
/// `@TAKEN` for an address in use, `@NPY` and `@CSV` for numbers, `@TWO` for two columns of one
/// name, `@QUOTE` for a quote without end, `@MANY` for 61 groups.
const CASES: &str = "\
2 | pis | unrecognized subcommand 'pis' | 'psi'
2 | lokup | unrecognized subcommand | 'lookup'
2 | vol | unrecognized subcommand | 'vole'
2 | kegen | unrecognized subcommand | 'keygen'
2 | --nonsense | unexpected argument '--nonsense' | --help
2 | vole @VOLE --n 1000 | --n |
2 | vole @VOLE --rign fp61 | --rign | '--ring'
2 | vole @VOLE --ring fp62 | --ring |
2 | vole @VOLE --security none | --security |
2 | vole @VOLE --log yaml | --log |
2 | vole @VOLE --timeout 0 | a time is at least one second |
2 | vole @VOLE --timeout -1 | unexpected argument '-1' |
2 | vole @VOLE --wait 0s | at least one second |
2 | vole @VOLE --threads 0 | --threads |
2 | vole @VOLE --quiet -v | cannot be used with | --help
2 | vole @VOLE --report /proc/volery-report | --report |
2 | vole @VOLE --report @FULL | --report | -
2 | vole @VOLE --link fast | --link |
2 | vole @VOLE --allow-group-readable-identity=1 | --allow-group-readable-identity |
2 | vole --role sender --listen 127.0.0.1:0 --out @OUT --n 2^41 | the most in one run |
2 | vole --role sender --listen 127.0.0.1:0 --out @OUT --n ten | 'ten' is not a count |
2 | vole --role sender --listen 127.0.0.1:0 --out @OUT --n 2^40 | --n: the output needs | another disk
2 | vole --role sender --listen 127.0.0.1:0 --out @FULL --n 5 | is not empty | --force
2 | vole --role sender --listen 127.0.0.1:0 --out @OUT/in/it --n 5 | --out | mkdir -p
2 | vole --role both --listen 127.0.0.1:0 --out @OUT --n 5 | possible values: sender, receiver |
2 | vole --role sender --out @OUT --n 5 | one of them is required | --connect HOST:PORT
2 | vole --role sender --out @OUT --n 5 --listen 127.0.0.1:0 --connect 127.0.0.1:1 | only one of them | --listen HOST:PORT
2 | vole --role sender --out @OUT --n 5 --listen 7000 | '7000' is not HOST:PORT | 127.0.0.1:7000
2 | vole --role sender --out @OUT --n 5 --connect tcp://a.example:1 | is a URL | write a.example:1
2 | vole --role sender --out @OUT --n 5 --connect localhost | 'localhost' is not HOST:PORT | 127.0.0.1:7000
2 | vole --role sender --out @OUT --n 5 --listen 0.0.0.0:0 | is not a loopback address | volery keygen
2 | vole --role sender --out @OUT --n 5 --connect 192.0.2.1:7000 | is not a loopback address | --identity DIR --peer
1 | vole --role sender --out @OUT --n 5 --listen @TAKEN | in use | ss -ltnp
4 | vole --role sender --out @OUT --n 5 --wait 1s --connect no-such-name.invalid:7000 | did not resolve | --wait TIME
4 | vole --role sender --out @OUT --n 5 --wait 1s --connect 127.0.0.1:1 | no peer started to listen on 127.0.0.1:1 | --wait TIME
4 | vole --role sender --out @OUT --n 5 --wait 1s --listen 127.0.0.1:0 | no peer connected | --wait TIME
2 | vole @VOLE --identity @ID | --peer: required with --identity | fingerprint
2 | vole @VOLE --peer @PRINT | --identity: required with --peer | volery keygen
2 | vole @VOLE --identity @ID --peer @PRINT | party's own --identity | ask it
2 | vole @VOLE --identity @ID --peer @ID/fingerprint.txt | party's own --identity | ask it
2 | vole @VOLE --identity @ID --peer @FILE | the file holds no fingerprint |
2 | vole @VOLE --identity @ID --peer @OUT | there is no file of this name |
2 | vole @VOLE --identity @ID --peer abcd-efgh | --peer |
2 | vole @VOLE --identity @ID --peer @PRINT --peer @PRINT --peer @PRINT | more than twice | that expired
2 | vole @VOLE --identity @ID --peer @PRINT --follow-key | --follow-key: requires one --peer | to a file
2 | vole @VOLE --identity @ID --identity-command true --peer @PRINT | not with --identity |
2 | vole @VOLE --identity-command ' --peer @PRINT | a quote is not closed |
1 | vole @VOLE --identity-command no-such-program --peer @PRINT | cannot start 'no-such-program' | sh -c
1 | vole @VOLE --identity-command true --peer @PRINT | --identity-command: it contains no certificate |
2 | vole @VOLE --identity-passphrase prompt | requires --identity or --identity-command |
2 | vole @VOLE --identity-passphrase secret | give file:PATH, env:NAME or prompt |
2 | keygen --out @OUT --token --renew @ID | --renew |
2 | keygen --out @OUT --name n --renew @ID | --renew |
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
2 | psi @SENDS --key point:emial | no normaliser 'emial' | names of normalisers
2 | psi @SENDS --key point:e164=ZZ | 'ZZ' is no region | names of normalisers
2 | psi @SENDS --key point:e164 | 'e164' needs the region | names of normalisers
2 | psi @SENDS --key point:date=%Q | no '%Q' in date formats |
2 | psi @SENDS --key point:lower+ | no normaliser '' |
2 | psi @SENDS --key point:float | no normaliser 'float' | integer, decimal
2 | psi @SENDS --key \"point | a quote does not close |
2 | psi @SENDS --key point --left | unexpected argument '--left' | --help
2 | psi @SENDS --key point --out @OUT.csv | the sender gets no rows; remove --out | --both
2 | psi @SENDS --key point --buckets 0 | give a whole number from 1 to 16384 |
2 | psi @SENDS --key point --buckets 16385 | give a whole number from 1 to 16384 |
2 | psi @SENDS --key point --memory 10XB | '10XB' is not a size, such as 2GiB |
2 | psi @SENDS --key point --memory 1MB | bytes, but may use only 1000000 | allow more memory
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
1 | psi --role sender --listen 127.0.0.1:0 --input @QUOTE --key id | a quoted field that starts in row 1 | --quote none
1 | psi --role sender --listen 127.0.0.1:0 --input @OUT.csv --key id | No such file |
2 | psi @GETS --key point | the receiver needs an output file |
2 | psi @GETS --key point --out @OUT.xyz | does not say what kind of file | .parquet
2 | psi @GETS --key point --out @CSV | is the input file | never overwritten
2 | psi @GETS --key point --out - --report - | - is the output file | another file
2 | lookup @SENDS --key point | --value: required at the sender |
2 | lookup @SENDS --key point --value coefficient --left | remove --left at the sender |
1 | lookup @SENDS --key point --value c | no column \"c\" |
2 | lookup @GETS --key point --value coefficient --out @OUT.csv | remove --value on the receiver's side | --value-name
2 | lint @CSV | --key | --help
1 | lint @OUT.csv --key point | No such file |
1 | lint --input @OUT.csv --key point | No such file |
2 | lint s3://b/k.csv --key point | is a URL .. aws s3 cp s3://b/k.csv - |
2 | lint --key point | FILE |
1 | lint @CSV --key nope | no column \"nope\" |
2 | lint @CSV --key point:e164=D | 'D' is no region |
1 | lint @QUOTE --key id | is never closed | write a quote twice
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
2 | params estimate --n 0 --field f2 --noise regular | 0 samples |
2 | params estimate --n 1 --k 1 --t 1 --field f2 --noise regular | 1 samples |
2 | params estimate --n -1 --field f2 --noise regular | digits |
2 | params estimate --n 1e6 --field f2 --noise regular | digits |
2 | params estimate --n 1099511627777 --field f2 --noise regular | 2^40 |
2 | params estimate --n 100 --k 0 --field f2 --noise regular | 0 symbols |
2 | params estimate --n 100 --k 100 --field f2 --noise regular | 100 samples |
2 | params estimate --n 100 --k 9 --t 0 --field f2 --noise regular | 0 noisy |
2 | params estimate --n 100 --k 9 --t 101 --field f2 --noise regular | of 100 |
2 | params estimate --n 100 --t 5 --field f2 --noise regular | --k |
2 | params estimate --n 100 --bits 0 --field f2 --noise regular | 1..=512 |
2 | params estimate --n 100 --bits 513 --field f2 --noise regular | 1..=512 |
2 | params estimate --k 100 --field f2 --noise regular | --n |
2 | params estimate --set b14 | 'b14' |
2 | params estimate --set b12 --n 5 | --set |
2 | params estimate --n 100 --noise regular | --field |
2 | params estimate --n 100 --field f3 --noise regular | f3 |
2 | params estimate --n 100 --field f2 --noise odd | odd |
1 | params estimate --n 100 --field f2 --noise regular | 2^128 | --bits
2 | vole @VOLE --ring z64 --security malicious | --security: vector OLE over z64 .. needs a field |
2 | vole @VOLE --ring z64 --security malicious --parameters paper80 | --security .. 2019 |
2 | vole @VOLE --ring z64 --security malicious --protocol low-communication | --security .. needs a field |
2 | vole @VOLE --set b13 | --set .. made for f2, not for fp61 |
2 | vole @VOLE --set b10 --parameters paper80 | --set .. own sets |
2 | vole @VOLE --parameters ferret | --parameters .. 'volery cot' |
2 | vole @VOLE --parameters paper80 --protocol low-communication | --parameters .. its own parameters |
2 | vole @VOLE --noise uniform --protocol low-communication | --noise .. half-trees |
2 | cot @COT --parameters paper80 | --parameters .. 'volery vole' |
2 | cot @COT --set b13 --parameters ferret | --set .. own sets |
2 | cot @COT --set b10 --noise uniform | --set .. regular noise, not for uniform |
2 | cot @COT --set b10 --protocol low-communication | --set .. its own parameters |
2 | cot @COT --set ferret-reg-setup | --set .. 85 bits |
2 | vole @VOLE --delta @FILE | --delta |
2 | vole --role sender --listen 127.0.0.1:0 --out @OUT | --n |
2 | vole --role sender --listen 127.0.0.1:0 --n 5 | --out |
2 | vole --role sender --listen 127.0.0.1:0 --out @OUT --n 16777217 --parameters paper80 | --n |
2 | vole --role sender --listen 127.0.0.1:0 --out @FULL --n 5 --force | did not write |
2 | vole --role sender --listen 127.0.0.1:0 --out @FILE --n 5 | --out |
2 | vole --role sender --listen 127.0.0.1:0 --out @FILE/out --n 5 | --out |
2 | vole --role sender --listen 127.0.0.1:0 --out /proc/volery-out --n 5 | --out: |
2 | vole --role sender --listen 127.0.0.1:0 --out .. --n 5 | --out: |
2 | vole --role sender --listen 127.0.0.1:0 --out / --n 5 | --out: |
2 | cot @COT --set b99 | --set: unknown LPN set 'b99' | b10, b11, b12, b13
2 | vole @VOLE --identity @ID --peer @SLIP | typing error |
2 | psi @KEYS --key k --protocol ecdh | 'ecdh' |
2 | psi @KEYS --key k --security malicious --protocol vole-low | semi-honest peers only |
2 | psi @KEYS --key k --protocol vole --security malicious --both | not available with --both |
2 | psi @KEYS --key k --both | with --both the sender needs an output file |
2 | psi @KEYS --key k --encoding klingon | --encoding |
2 | psi @KEYS --key k --value v | --value |
1 | psi @KEYS --key k:date | column \"k\" of row 1 is not a date | YYYY-MM-DD
1 | psi @KEYS --key k:integer | column \"k\" of row 1 is not an integer | decimal digits
1 | psi --role sender --listen 127.0.0.1:0 --key k --input @XLSX | does not say what kind of file this is |
1 | psi --role sender --listen 127.0.0.1:0 --key k --input @FULL | is a folder without .parquet files |
1 | psi --role sender --listen 127.0.0.1:0 --key k --input @DEVICE | is not a regular file |
2 | psi @GETS --key point --out @FULL.csv | exists |
2 | psi @GETS --key point --out @FULL.csv --force | is not a file |
2 | lookup @KEYS --key k --value v --value-name w | --value-name: only the receiver |
2 | lookup @KEYS --key k --value v --out @OUT.csv | --out: the sender gets no rows |
2 | lookup @KEYS --key k --value v --both | --out: with --both the sender needs an output file |
2 | lookup @GETS --key point --value-name w | --out: the receiver needs an output file |
2 | lookup @GETS --key point --out @OUT.csv --value-name w,w | there would be two columns named 'w' |
2 | lookup @GETS --key point --out @OUT.csv --value-name point | there would be two columns named 'point' |
2 | lookup @GETS --key point --out @OUT.csv --rule-column point | there would be two columns named 'point' |
2 | psi @KEYS --key k --result total | --result .. choose rows, count, sum=COL | 
2 | psi @KEYS --key k --result count=v | --result .. count has no column | 
2 | psi @KEYS --key k --result sum=v,w | --result .. sum has one column | 
2 | psi @KEYS --key k --result sum-product=v | --result .. sum-product has two columns | 
2 | psi @KEYS --key k --result mean=v,w | --result .. mean has one column |
2 | psi @KEYS --key k --result rows=v | --result |
2 | psi @KEYS --key k --to both | --to .. only with --result count | --both
2 | psi @KEYS --key k --bound 3 | --bound .. only with --result count | 
2 | psi @KEYS --key k --decimals 1 | --decimals .. only with --result | 
2 | psi @KEYS --key k --minimum 3 | --minimum .. only with --result | 
2 | psi @KEYS --key k --epsilon 1 | --epsilon .. only with --result | 
2 | psi @KEYS --key k --delta 1 | --delta .. only with --result | 
2 | psi @KEYS --key k --group-by g | --group-by .. only with --result | 
2 | psi @KEYS --key k --groups x | --groups .. only with --result | 
2 | psi @KEYS --key k --protocol circuit | --protocol .. circuit gives no rows | --result count
2 | psi @KEYS --key k --result count --security malicious | --security .. no practical malicious form is known | --result rows
2 | psi @KEYS --key k --result count --protocol vole | --protocol .. vole gives rows, not a count | circuit-low
2 | psi @KEYS --key k --result count --protocol kkrt-paper | --protocol .. kkrt-paper gives rows | dh
2 | psi @KEYS --key k --result count --both --to both | --both .. --to says who gets the result | remove
2 | psi @KEYS --key k --result count --protocol circuit --link 1Gbit,1ms | --link .. the same on every link | only auto
2 | psi @KEYS --key k --result count --protocol dh --minimum 1 | --protocol .. without groups, minimum or noise | circuit
2 | psi @KEYS --key k --result count --protocol dh --epsilon 1 | --protocol .. without groups, minimum or noise | circuit
2 | psi @KEYS --key k --result sum=v --protocol dh --bound 1 | --protocol .. dh gives the number of all common keys | circuit
2 | psi @KEYS --key k --result count --bound 3 | --bound .. a count has no values | choose a sum
2 | psi @KEYS --key k --result count --decimals 3 | --decimals .. a count has no values | choose a sum
2 | psi @KEYS --key k --result sum=v | --bound .. required with --result sum | a low one is better
2 | psi @KEYS --key k --result mean | --bound .. required with --result mean | 
2 | psi @KEYS --key k --result sum-product=v,w | --bound .. required with --result sum-product | 
2 | psi @KEYS --key k --result sum=v --bound 0 | --bound .. is not a bound | above zero
2 | psi @KEYS --key k --result sum=v --bound 1e-3 | --bound .. is not a bound | decimal number
2 | psi @KEYS --key k --result sum=v --bound 1.25 --decimals 1 | --bound .. has more than 1 decimal places | --decimals
2 | psi @KEYS --key k --result sum=v --bound 10 --decimals 18 | --bound .. does not fit into 64 bits | lower bound
2 | psi @KEYS --key k --result sum=v --bound 10 --decimals 19 | --decimals .. from 0 to 18 | 
2 | psi @KEYS --key k --result sum-product=v,v --bound 1 --decimals 10 | --decimals .. at most 9 decimal places | round
2 | psi @KEYS --key k --result count --minimum 4294967297 | --minimum .. is more than 4294967296 | fewest
2 | psi @KEYS --key k --result count --epsilon 0 | --epsilon .. not a number above zero | 0.5
2 | psi @KEYS --key k --result count --epsilon=-1 | --epsilon .. not a number above zero | 0.5
2 | psi @KEYS --key k --result count --delta 0.1 | --delta .. only with --epsilon | Gaussian
2 | psi @KEYS --key k --result count --epsilon 1 --delta 1 | --delta .. delta must be 0.5 at most | 1e-9
2 | psi @KEYS --key k --result sum=v --bound 9000000000000000000 --epsilon 0.1 | --epsilon .. too large for 64 bits | lower --bound
2 | psi @KEYS --key k --result count --group-by g | --groups .. required with --group-by | both sides
2 | psi @KEYS --key k --result count --groups x,x | --groups .. \"x\" is named twice | 
2 | psi @KEYS --key k --result count --groups @MANY | --groups .. 61 groups; a run has at most 60 | 
2 | psi @KEYS --key k --result count --or v | --or .. of the keys of one --key | --result rows
2 | psi @KEYS --key k --result count --resume @OUT | --resume .. computed in memory | --dry-run
2 | psi @KEYS --key k --result count --memory 1GiB | --memory .. computed in memory | --dry-run
2 | psi @KEYS --key k --result count --buckets 2 | --buckets .. computed in memory | --dry-run
2 | psi @KEYS --key k --result count --rule-column r | --rule-column .. a count has no rows | --result rows
2 | psi @KEYS --key k --result count --to receiver --out @OUT.csv | --out .. this side does not get the count | --to says
2 | psi @KEYS --key k --result count --to sender --out - | --out .. on standard output already | name a file
2 | psi @KEYS --key k --result count --to sender --out @OUT.txt.zip | --out .. does not say what kind | 
2 | psi @KEYS --key k --result count --to sender --out @IN | --out .. is the input file | never overwritten
2 | psi @KEYS --key k --result count --to sender --out @OUT.json --report @OUT.json | out.json is the output file | 
2 | run-local psi --workers 2 --run r --gateway 127.0.0.1:1 --identity @ID --peer qm80-9zyq-gffc-rcgg-eaad-0d9e-rnre-8t3c-bvb8 --resume @OUT --role sender --input @IN --key k --result count --protocol dh | --protocol .. circuit or circuit-low |
2 | k8s --image i --work-claim w --identity-secret s --out @OUT -- psi --workers 2 --run serve --gateway g:1 --peer qm80-9zyq-gffc-rcgg-eaad-0d9e-rnre-8t3c-bvb8 --role sender --key k --input /work/a.csv | --run: the name of a server or gateway |
2 | k8s --image i --work-claim w --identity-secret s --out @OUT -- psi --workers 2 --run r --gateway g:1 --peer qm80-9zyq-gffc-rcgg-eaad-0d9e-rnre-8t3c-bvb8 --role sender --input a.csv --key k --result shares=k | --result .. not by workers |
2 | k8s --image i --work-claim w --identity-secret s --out @OUT -- psi --workers 2 --run r --gateway g:1 --peer qm80-9zyq-gffc-rcgg-eaad-0d9e-rnre-8t3c-bvb8 --role sender --key k --input a.csv | --input .. a.csv is not in a folder of the pods | /data
2 | k8s --image i --work-claim w --identity-secret s --out @OUT -- psi --workers 2 --run r --gateway g:1 --peer qm80-9zyq-gffc-rcgg-eaad-0d9e-rnre-8t3c-bvb8 --role sender --key k --input /data/a.csv | --input .. is not in a folder of the pods | --data-claim
2 | k8s --image i --work-claim w --identity-secret s --out @OUT -- psi --workers 2 --run r --gateway g:1 --peer qm80-9zyq-gffc-rcgg-eaad-0d9e-rnre-8t3c-bvb8 --role sender --key k --input /work/a.csv --out /data/b.csv | --out .. is not in a folder | /work
2 | k8s --image i --work-claim w --identity-secret s --out @OUT --memory much -- psi --workers 2 --run r --gateway g:1 --peer qm80-9zyq-gffc-rcgg-eaad-0d9e-rnre-8t3c-bvb8 --role sender --key k --input /work/a.csv | --memory .. a quantity |
2 | k8s --image i --work-claim w --identity-secret s --out @OUT --toleration a:Soon -- psi --workers 2 --run r --gateway g:1 --peer qm80-9zyq-gffc-rcgg-eaad-0d9e-rnre-8t3c-bvb8 --role sender --key k --input /work/a.csv | --toleration .. NoSchedule |
2 | k8s --image i --out @OUT -- psi --workers 2 --run r --gateway g:1 --peer qm80-9zyq-gffc-rcgg-eaad-0d9e-rnre-8t3c-bvb8 --role sender --key k --input /work/a.csv | --work-claim: required |
2 | k8s --image i --out @OUT -- vole --n 5 | the first word is psi |
2 | run-local psi --role sender --gateway 127.0.0.1:1 --input @IN --run r --key k --workers 2 | --resume |
2 | run-local psi --role sender --gateway 127.0.0.1:1 --input @IN --run r --key k --workers 2 --resume @OUT | --identity, --peer |
2 | run-local psi --role sender --gateway 127.0.0.1:1 --input @IN --run r --key k --workers 2 --resume @OUT --listen 127.0.0.1:0 | --listen: the two sides meet at --gateway |
2 | k8s --image i --work-claim w --identity-secret s --out @OUT -- serve --key k | --listen: required |
2 | k8s --image i --work-claim w --identity-secret s --out @OUT -- gateway --web 0.0.0.0:0 --to=p:7 --peer @PRINT --identity-passphrase file:/identity/p | --web: a pod needs a fixed port |
2 | k8s --image i --work-claim w --identity-secret s --out @OUT -- serve --listen 0.0.0.0:7 --clients /config/c.toml | --clients: /config/c.toml is not in a folder of the pods | /config (--config-map)
2 | k8s --image i --work-claim w --identity-secret s --out @OUT --config-map c -- serve --listen 0.0.0.0:7 --clients c.toml | --clients: c.toml is not in a folder | /data (--data-claim)
2 | k8s --image i --work-claim w --identity-secret s --out @OUT --config-map c -- serve --web 0.0.0.0:7 --web-certificate /identity/web.pem --web-key web.pem | --web-key: web.pem is not in a folder | /identity (--identity-secret)
2 | k8s --image i --work-claim w --identity-secret s --out @OUT --config-map c -- serve --listen 0.0.0.0:7 --metrics 127.0.0.1:9 | --metrics: nobody reaches 127.0.0.1 of a pod | 0.0.0.0:9
2 | k8s --image i --work-claim w --identity-secret s --out @OUT --config-map c -- serve --listen 0.0.0.0:7 --clients /config/../c.toml | --clients: /config/../c.toml is not in a folder |
2 | k8s --image i --work-claim w --identity-secret s --out @OUT --config-map c -- serve --listen 0.0.0.0:7 --identity-passphrase prompt | --identity-passphrase: prompt is not | (--identity-secret)
2 | k8s --image i --work-claim w --identity-secret s --out @OUT -- gateway --web 127.0.0.1:7 --to p:7 --peer @PRINT --web-files /work/web | --web-files: /work/web is not in a folder | all but a gateway from /work
2 | k8s --image i --work-claim w --identity-secret s --out @OUT -- gateway --listen 0.0.0.0:7 --allow @PRINT --report /work/r.json | --report: /work/r.json is not | a gateway writes no file
2 | psi @KEYS --key k --result shares | --out |
2 | psi @KEYS --key k --result shares --out - | standard output |
2 | psi @KEYS --key k --result shares --out x.csv | another format |
2 | psi @KEYS --key k --result shares=v --out @OUT | --bound |
2 | psi @KEYS --key k --result shares=v --bound 0 --out @OUT | --bound |
2 | psi @KEYS --key k --result shares=v --bound=-1 --out @OUT | --bound |
2 | psi @KEYS --key k --result shares=v --bound 0.5 --out @OUT | --bound |
2 | psi @KEYS --key k --result shares --bound 5 --out @OUT | --bound |
2 | psi @KEYS --key k --result shares=v,v --bound 5 --out @OUT | --result |
2 | psi @KEYS --key k --result shares --decimals 2 --out @OUT | --decimals |
2 | psi @KEYS --key k --result shares=v --bound 5 --decimals 19 --out @OUT | --decimals |
2 | psi @KEYS --key k --result shares --protocol dh --out @OUT | --protocol |
2 | psi @KEYS --key k --result shares --security malicious --out @OUT | --security |
2 | psi @KEYS --key k --result shares --resume w --out @OUT | --resume |
2 | psi @KEYS --key k --result count --row-order | --row-order |
2 | psi @KEYS --key k --row-order | --row-order |
2 | psi @KEYS --key k --result shares --out @FULL | --out |
2 | psi @KEYS --key k --result shares --out @FULL --force | --out |
2 | lint @CSV --key point --or \"k | --or |
2 | lint @CSV --key point --report @CSV | --report |
2 | gateway --listen 127.0.0.1:0 | --allow |
2 | gateway --listen 127.0.0.1:0 --allow @PRINT | at least two organisations |
2 | gateway --listen 127.0.0.1:0 --allow @PRINT --allow @PRINT | at least two organisations |
2 | gateway --listen 127.0.0.1:0 --allow @PRINT --allow nothing | no file of this name |
2 | gateway --listen 127.0.0.1:0 --idle soon | --idle |
2 | gateway | --listen: required |
2 | gateway --web 127.0.0.1:0 | --to: required with --web | 127.0.0.1:7000
2 | gateway --web 127.0.0.1:0 --to x | --to: 'x' is not HOST:PORT |
2 | gateway --web 127.0.0.1:0 --to 192.0.2.1:9 | --to: 192.0.2.1 .. --identity and --peer |
2 | gateway @WEB --allow @PRINT | --allow .. cannot be used with |
2 | gateway @WEB --web-origin evil | --web-origin .. https://HOST |
2 | gateway @WEB --web-files @OUT | --web-files .. No such file |
2 | gateway @WEB --web-key @PEM | --web-certificate .. required |
1 | gateway @WEB --token @PRINT --web-certificate @OUT --web-key @PEM | --web-certificate .. No such file |
1 | gateway @WEB --token @PRINT --web-certificate @PEM --web-key @OUT | --web-key .. No such file |
1 | gateway @WEB --token @PRINT --web-certificate @PEM --web-key @FILE | --web-key | chmod 600
1 | gateway @WEB --token @PRINT --web-certificate @PEM --web-key @PEM | holds none in PEM | fullchain.pem
2 | gateway @WEB --web-origin http://192.0.2.1 | --token: required .. a --web-origin of another machine |
2 | gateway @WEB --web-certificate @PEM --web-key @PEM | --token: required with --web-certificate | keygen --token
2 | gateway --web 0.0.0.0:0 --to 127.0.0.1:9 | --web: 0.0.0.0 is not a loopback address | reverse proxy
2 | serve --store @OUT --listen 0.0.0.0:0 | --identity and --clients are required |
2 | serve --store @OUT --listen 127.0.0.1:0 --metrics 0.0.0.0:0 | --metrics |
2 | serve --store @OUT | --listen, --web: one of them is required |
2 | serve --store @OUT --web 0.0.0.0:0 | --web: 0.0.0.0 .. --web-certificate |
2 | serve --store @OUT --web 127.0.0.1:0 --web-certificate @PEM --web-key @PEM | --clients: required with --web-certificate | keygen --token
2 | serve --store @OUT --web 127.0.0.1:0 --web-origin https://a.example | --clients: required .. a --web-origin of another machine |
2 | serve --store @OUT --web 127.0.0.1:0 --prepare | --prepare .. --web |
2 | keygen --token --out @PEM | --out:  | choose another file
2 | keygen --token --out @OUT --days 3 | --days |
2 | psi @KEYS --key k --protocol served | the sender of --protocol served is 'volery serve' |
";

#[test]
fn wrong_invocations_are_answered_with_what_is_wrong_and_a_hint() {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| text(&place.path().join(name)).to_owned();
    for name in ["full", "full.csv"] {
        std::fs::create_dir(path(name)).unwrap();
    }
    std::fs::write(path("full/thesis.tex"), "years of work").unwrap();
    std::fs::write(path("file"), "not a folder").unwrap();
    std::fs::write(path("two.csv"), "id,id\n1,2\n").unwrap();
    std::fs::write(path("quote.csv"), "id,name\n1,\"Ada\n").unwrap();
    std::fs::write(path("polynomial.csv"), "coefficient,point\n5,1\n7,2\n").unwrap();
    for name in ["keys.csv", "keys.xlsx"] {
        std::fs::write(path(name), format!("k,v\n{PLANTED},1\n")).unwrap();
    }
    std::os::unix::fs::symlink("/dev/null", path("device.csv")).unwrap();
    std::fs::write(path("web.pem"), "x").unwrap();
    std::fs::set_permissions(path("web.pem"), std::fs::Permissions::from_mode(0o600)).unwrap();
    std::fs::set_permissions(path("file"), std::fs::Permissions::from_mode(0o644)).unwrap();
    let header = "{'descr': '<u8', 'fortran_order': False, 'shape': (1, 2), }";
    let array = format!("\u{93}NUMPY\u{1}\0\u{76}\0{header:117}\n");
    let array: Vec<u8> = array.chars().map(|byte| byte as u8).collect();
    std::fs::write(path("a.npy"), [array, vec![1; 16]].concat()).unwrap();
    let made = run(&["keygen", "--out", &path("id"), "--quiet"]);
    let print = made.stdout.trim().to_owned();
    let slip = print.replacen(&print[..1], if print.starts_with('7') { "8" } else { "7" }, 1);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let before = names(place.path());

    let (sender, listen) = ("--role sender --listen 127.0.0.1:0", "--listen 127.0.0.1:0");
    let names_of = [
        ("@VOLE", format!("{sender} --n 5 --out @OUT")),
        ("@COT", format!("{sender} --n 5 --out @OUT")),
        ("@OPE", format!("{sender} --input @CSV")),
        ("@MAT", format!("{sender} --input @NPY")),
        ("@SENDS", format!("{sender} --input @CSV")),
        ("@GETS", format!("--role receiver {listen} --input @CSV")),
        ("@KEYS", format!("{sender} --input {}", path("keys.csv"))),
        ("@IN", path("keys.csv")),
        ("@MANY", (1..61).fold("g0".to_owned(), |all, i| format!("{all},g{i}"))),
        ("@OUT", path("out")),
        ("@FULL", path("full")),
        ("@FILE", path("file")),
        ("@XLSX", path("keys.xlsx")),
        ("@DEVICE", path("device.csv")),
        ("@WEB", "--web 127.0.0.1:0 --to 127.0.0.1:9".to_owned()),
        ("@PEM", path("web.pem")),
        ("@PRINT", print),
        ("@SLIP", slip),
        ("@TAKEN", taken.local_addr().unwrap().to_string()),
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
        let errors = ended.stderr.lines().filter(|line| line.starts_with("error: ")).count();
        let hint_is_right = match (hint, line("hint: ")) {
            ("", _) | ("-", None) => true,
            (_, said) => said.is_some_and(|said| said.contains(hint)),
        };
        let error_is_right =
            line("error: ").is_some_and(|said| error.split(" .. ").all(|part| said.contains(part)));
        let is_right = ended.status == Some(status.parse().unwrap())
            && errors == 1
            && error_is_right
            && hint_is_right
            && ended.stdout.is_empty()
            && !ended.stderr.contains(PLANTED);
        if !is_right {
            wrong.push(format!("{case}\n  {:?}\n{}", ended.status, ended.stderr));
        }
        assert_eq!(names(place.path()), before, "{case}: left files behind");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
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
        assert!(time.len() == 24 && time.ends_with('Z'), "{line}");
        assert!(line["level"].is_string() && line["message"].is_string());
        assert!(line.as_object().unwrap().contains_key("phase"));
    }
    let last = lines.last().unwrap();
    assert_eq!((&last["level"], &last["status"]), (&"error".into(), &4.into()));
    assert_eq!(last["phase"], "connecting");
    assert!(last["hint"].as_str().unwrap().contains("--wait"));
    let report: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((&report["command"], &report["role"]), (&"ope".into(), &"receiver".into()));
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
