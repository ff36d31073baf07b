//! A protocol as data.

use std::any::Any;
use std::fmt;

use volery_channel::{Channel, Result, Role};

/// The security model of a protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// An honest party that ends without an error has a right result, against any peer.
    Malicious,
    /// The honest party ends, against any peer; but its result may be wrong.
    SemiHonest,
}

/// The result of a party; only its own protocol can inspect it.
pub struct Output(Box<dyn Any + Send>);

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Output(..)")
    }
}

type Party = Box<dyn Fn(&mut Channel) -> Result<Output> + Send + Sync>;
type Relation = Box<dyn Fn(&Output, &Output) -> bool + Send + Sync>;

/// A protocol: both parties, and the relation of their results.
pub struct Protocol {
    /// Its name, including its variant.
    pub name: String,
    /// Its security model.
    pub model: Model,
    parties: [Party; 2],
    relation: Relation,
}

impl Protocol {
    /// A protocol with the parties `left` and `right`, with fixed seeds; `relation` holds for two
    /// honest results.
    pub fn new<A: Send + 'static, B: Send + 'static>(
        name: impl Into<String>,
        model: Model,
        left: impl Fn(&mut Channel) -> Result<A> + Send + Sync + 'static,
        right: impl Fn(&mut Channel) -> Result<B> + Send + Sync + 'static,
        relation: impl Fn(&A, &B) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            model,
            parties: [party(left), party(right)],
            relation: Box::new(move |Output(left), Output(right)| {
                let (left, right) = (left.downcast_ref(), right.downcast_ref());
                left.zip(right).is_some_and(|(left, right)| relation(left, right))
            }),
        }
    }

    /// Runs one party to its end: the left one is the sender, where the protocol has one.
    ///
    /// # Errors
    /// The error of the protocol or of the channel.
    pub fn run(&self, side: Role, channel: &mut Channel) -> Result<Output> {
        self.parties[side as usize](channel)
    }

    /// Whether the results of the left and of the right party satisfy the relation.
    #[must_use]
    pub fn agree(&self, left: &Output, right: &Output) -> bool {
        (self.relation)(left, right)
    }
}

impl fmt::Debug for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Protocol({:?}, {:?})", self.name, self.model)
    }
}

fn party<T: Send + 'static>(
    run: impl Fn(&mut Channel) -> Result<T> + Send + Sync + 'static,
) -> Party {
    Box::new(move |channel| Ok(Output(Box::new(run(channel)?))))
}
