//! Independence of the outputs.

use super::*;

/// Checks that each bit is one in half of 2^14 blocks, within six standard deviations.
fn assert_balanced(blocks: &[Block], what: &str) {
    assert_eq!(blocks.len(), 1 << 14);
    for bit in 0..128 {
        let ones = blocks.iter().filter(|block| block.bit(bit)).count();
        assert!(ones.abs_diff(1 << 13) < 6 * 64, "{what}: bit {bit}: {ones}");
    }
}

/// Outputs are balanced, and so are the differences of any two outputs on different inputs or
/// instances.
#[test]
fn outputs_look_unrelated() {
    let n = 1 << 14;
    let code = Code::new(&SEED, 448);
    let (mut sender, mut receiver) = dealt(11);
    // All inputs but one bit are the same.
    let inputs = vec![Block::new(12); n];
    let made = extend(&mut sender, &mut receiver, &code, &inputs);
    assert_balanced(&made.outputs, "outputs on one input");
    let neighbours = made.outputs.iter().zip(made.outputs.iter().cycle().skip(1));
    let differences: Vec<_> = neighbours.map(|(&a, &b)| a ^ b).collect();
    assert_balanced(&differences, "neighbouring instances");
    let mut last = made.outputs.clone();
    for change in [1, 2, 3, 1 << 127] {
        let others = vec![Block::new(12 ^ change); n];
        let values = evaluate_all(&sender, &made.keys, &code, &others);
        assert_balanced(&values, "outputs on another input");
        for (what, before) in [("own", &made.outputs), ("last", &last)] {
            let differences: Vec<_> = values.iter().zip(before).map(|(&a, &b)| a ^ b).collect();
            assert_balanced(&differences, what);
        }
        last = values;
    }
    // One instance on many inputs: no two outputs are equal.
    let many: Vec<_> = (0..n as u128).map(Block::new).collect();
    let mut values = vec![Block::ZERO; n];
    sender.shift(&code, &many, &mut values).unwrap();
    made.keys.evaluate_shifted(&code, &vec![5; n], &many, &mut values);
    assert_balanced(&values, "one instance");
    assert_eq!(values[12], made.outputs[5]);
    values.sort_unstable_by_key(|value| u128::from(*value));
    assert!(values.windows(2).all(|pair| pair[0] != pair[1]));
}

/// A receiver with another code than the sender gets none of the sender's outputs: the code is part
/// of the agreement.
#[test]
fn another_code_gives_other_outputs() {
    let (mut sender, mut receiver) = dealt(1);
    let (ours, theirs) = (Code::new(&[1; 32], 440), Code::new(&[2; 32], 440));
    let inputs = inputs(100, 1);
    let (mut near, mut far) = Channel::memory_pair();
    let mut outputs = vec![Block::ZERO; 100];
    receiver.extend(&theirs, &inputs, &mut outputs, &mut near).unwrap();
    let keys = sender.extend(&ours, 100, &mut far).unwrap();
    let values = evaluate_all(&sender, &keys, &ours, &inputs);
    assert!(values.iter().zip(&outputs).all(|(a, b)| a != b));
}
