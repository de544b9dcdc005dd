"""Defines the events that an observer emits in the examined process and that the examiner reads in its own.

Runs in the program's process: standard library only, and Python 3.9's syntax.

Variables are referred to by the number of their VariableMade event. Each event is one line of JSON:
`{"schema": 1, "event": "VariableRead", "number": 3}`.
"""

from __future__ import annotations

import dataclasses
import enum
import json
import typing
from dataclasses import dataclass

SCHEMA = 1


class Outcome(enum.Enum):
    """How a program ended. A process cannot report the last two of itself."""

    FINISHED = "finished"
    EXITED = "exited"  # by SystemExit, with a status other than 0
    RAISED = "raised"
    STOPPED = "stopped"  # after the number of steps that was asked for, or by Ctrl-C
    KILLED = "killed"
    HANGS = "hangs"


class Owner(enum.Enum):
    """By whose code a variable is made or written."""

    USER = "user"
    OPTIMIZER = "optimizer"
    METRIC = "metric"
    RANDOM = "random"  # generators and seeds
    CHECKPOINT = "checkpoint"  # what restores and loads
    LAYER = "layer"  # layers and models
    TRAINER = "trainer"  # Keras's `fit`, `evaluate` and `predict`


class RetraceCause(enum.Enum):
    """What was new in each call of a traced function."""

    NUMBER = "a Python number"
    FUNCTION = "a Python function"
    TRACED_FUNCTION = "a tf.function"
    SHAPE = "a tensor with a shape"
    OBJECT = "a Python object"


class Part(enum.Enum):
    """A part of a program's step of which every replica has its own."""

    RANDOM_NUMBERS = "random numbers"
    BATCH_STATISTICS = "statistics of a part of a batch"
    HALF_PRECISION = "half precision"
    CLIPPING = "clipping by the program"
    SPARSE_GRADIENTS = "gradients of some rows of an embedding"
    WHOLE_BATCH_LOSS = "a loss of Keras that is no mean over examples"
    SCALAR_LOSS = "a loss of the program's own that returns one number"
    OWN_LOSS = "a loss of the program's own that returns several numbers"
    MASK = "a loss that leaves out masked values"
    REDUCTION = "a way of TensorFlow to add up replicas, chosen by the program"
    OWN_REDUCTION = "a way of the program's own to add up replicas"


class Carries(enum.Enum):
    """What a tensor of a step carries."""

    WEIGHTS = "weights"  # and constants: no example reaches it
    SIZE = "size"  # how many examples there are, or another length
    EXAMPLES = "examples"  # values of their own for several examples
    TOTAL = "total"  # one value of all examples


class SaveKind(enum.Enum):
    CHECKPOINT = "checkpoint"  # tf.train.Checkpoint
    MODEL = "model"  # Keras's `save` and `save_weights`
    ARRAYS = "arrays"  # numpy.savez


class Use(enum.Enum):
    """For what a model is given a function."""

    LOSS = "loss"
    METRIC = "metric"
    STEP = "step"  # that its class has instead of Keras's


class Frame(typing.NamedTuple):
    """A line of the program's own code on the call stack."""

    path: str
    line: int
    function: str

    @property
    def scope(self) -> tuple[str, str]:
        """The function in which the line is."""
        return self.path, self.function


Stack = tuple[Frame, ...]  # of the program's own code, the innermost frame first


@dataclass(frozen=True)
class Sample:
    """The norm of an array and some of its entries; no entries where the array is empty or not numeric."""

    norm: float = 0.0
    entries: tuple[float, ...] = ()


@dataclass(frozen=True)
class VariableValue:
    number: int
    sample: Sample


@dataclass(frozen=True)
class DivergedCopies:
    """A variable whose copies must agree and do not."""

    number: int
    distance: float  # relative to the largest entry
    layer_location: Stack  # where the innermost layer with this variable was made; known at the end


@dataclass(frozen=True)
class RestoredBeforeBuild:
    """Variables made after a restore that the file has values for and that did not get them."""

    path: str
    numbers: tuple[int, ...]
    message: str  # TensorFlow's
    location: Stack  # of the restore


@dataclass(frozen=True)
class OmittedVariable:
    """A variable that was changed, or is of what was saved, and is not in the file."""

    number: int
    trained: bool
    read: bool  # at any time before
    changed: bool  # differs from its value before the program first wrote to it, and is not 0
    scalar: float | None  # its value, if it is a single number
    of_saved: bool = False  # of a model, or of a layer, that was saved and whose file lacks it


@dataclass(frozen=True)
class OptimizerState:
    kind: str  # the name of its class
    trains: tuple[int, ...]
    steps: int
    variables: tuple[int, ...]  # its own: iterations, learning rate and slots
    learning_rate: str  # as its configuration shows it: a number or a schedule
    clipnorm: float | None = None  # as its configuration shows these three
    global_clipnorm: float | None = None
    clipvalue: float | None = None

    @property
    def clips(self) -> bool:
        return bool(self.clipnorm or self.global_clipnorm or self.clipvalue)


@dataclass(frozen=True)
class Metric:
    name: str
    value: float


@dataclass(frozen=True)
class Definition:
    """A function of the program's that a model uses."""

    use: Use
    name: str  # under which Keras reports a metric, or that of the step
    location: Frame  # its first line: of its decorators, if it has some


@dataclass(frozen=True)
class Setting:
    """A plain setting of a layer, a loss or a metric, as an argument of a constructor has made it."""

    layer: str  # the name of its class
    name: str
    value: str
    constructor: Frame  # of the class of the program that makes the layer, or that it is of


@dataclass(frozen=True)
class ChangedSetting:
    setting: Setting  # of a saved model
    now: str  # its value in the loaded one


@dataclass(frozen=True)
class DeviceBytes:
    """The bytes of the variables that one device has."""

    device: str  # such as CPU:1
    weights: int  # trained or not
    slots: int  # of optimizers
    other: int  # of metrics, generators and such


@dataclass(frozen=True)
class Activations:
    """The bytes that a replica keeps from the forward pass of a traced step for its gradients."""

    fixed: (
        int  # whatever the batch is; all of them, if the graph is traced for one size of the batch
    )
    per_example: int
    unknown: int  # tensors that are kept, too, and whose size is not known


@dataclass(frozen=True)
class HostReads:
    """A line of the program that read values of tensors on the host."""

    location: Stack
    times: int


@dataclass(frozen=True)
class Event:
    """Base of all events."""

    def to_json(self) -> str:
        """Returns the event as one line of JSON."""
        named = {"schema": SCHEMA, "event": type(self).__name__, **vars(self)}
        return json.dumps(named, default=plain)


@dataclass(frozen=True)
class LocatedEvent(Event):
    """Base of the events that a line of the program caused."""

    location: Stack


# The process


@dataclass(frozen=True)
class Started(Event):
    devices: int
    folder: str = ""  # in which the program runs


@dataclass(frozen=True)
class TensorFlowImported(Event):
    """The program imports TensorFlow, with these changes to the variables of the environment that are read then.

    A process that is forked with TensorFlow imported does not report it.
    """

    given: tuple[tuple[str, str], ...]
    deleted: tuple[str, ...]


@dataclass(frozen=True)
class ChildStarted(Event):
    """The first event in the file of a process that the program has started."""

    command: str  # empty for one that was forked
    forked_from: str = ""  # the name of the file of events of the process that it was forked from
    after: int = 0  # how many events of that file this process has in common with it


@dataclass(frozen=True)
class ObserverFailed(Event):
    """An error in the observer itself; the program did not notice it."""

    handler: str
    error: str


@dataclass(frozen=True)
class ExceptionRaised(LocatedEvent):
    """The exception that ended the program, at the innermost line of the program in its traceback."""

    error: str  # the name of its class
    traceback: str
    traced: Stack  # lines of traced functions that the message names


@dataclass(frozen=True)
class Ended(Event):
    outcome: Outcome
    status: int
    seconds: float
    values: tuple[VariableValue, ...]  # of all variables that can be read
    diverged_copies: tuple[DivergedCopies, ...]
    restored_before_build: tuple[RestoredBeforeBuild, ...]
    optimizers: tuple[OptimizerState, ...] = ()
    drawn: tuple[str, ...] = ()  # generators that gave numbers after the first step


@dataclass(frozen=True)
class ProcessLeft(LocatedEvent):
    """The program called `os._exit`."""

    status: int


@dataclass(frozen=True)
class ChildKilled(LocatedEvent):
    """A process that the program started was ended by a signal; the program has just learnt it."""

    signal: int
    command: str


@dataclass(frozen=True)
class WriteRefused(LocatedEvent):
    """The program was to change something outside of its folder, which no view of its own could take."""

    path: str  # or the command of a child program; empty where it is not known


@dataclass(frozen=True)
class HeldChildFailed(LocatedEvent):
    """A child program failed that may write only where the program may: that may be why."""

    status: int
    command: str


# Strategies and variables


@dataclass(frozen=True)
class ClusterStrategyRequested(LocatedEvent):
    strategy: str  # multi_worker or parameter_server
    config: str = ""  # the value of TF_CONFIG


@dataclass(frozen=True)
class ClusterDescribed(LocatedEvent):
    """The program sets TF_CONFIG."""


@dataclass(frozen=True)
class StrategyMade(LocatedEvent):
    name: str
    replicas: int


@dataclass(frozen=True)
class VariableMade(LocatedEvent):
    number: int
    name: str
    shape: tuple[int | None, ...]
    dtype: str
    maker: Owner
    copies: int  # 0 if no strategy distributes it
    parts: tuple[int, ...]  # the numbers of its copies
    synchronization: str  # ON_READ, ON_WRITE, AUTO or nothing
    aggregation: str = ""  # ONLY_FIRST_REPLICA, MEAN, SUM, NONE or nothing


@dataclass(frozen=True)
class VariableSharedCentrally(Event):
    """All replicas use this one variable, which lies in central storage or on a server."""

    number: int


@dataclass(frozen=True)
class VariableRead(Event):
    """The first time since the variable was made or loaded."""

    number: int


@dataclass(frozen=True)
class VariableWritten(LocatedEvent):
    number: int
    writer: Owner
    replicas: int  # that do so; 0 where it is done once for all


@dataclass(frozen=True)
class KerasDistributionSet(LocatedEvent):
    """The program chose a distribution of Keras 3, while TensorFlow computes for it."""

    kind: str  # the name of its class
    devices: int


# Steps


def step_name(training: int, number: int) -> str:
    return f"step {number}" + (f" of training {training}" if training > 1 else "")


@dataclass(frozen=True)
class StepEnded(Event):
    """The values of trained variables after one of the first calls that changed them.

    A training begins with the first step of an optimizer that has not been used before.
    """

    number: int  # in its training
    values: tuple[VariableValue, ...]
    initial_values: tuple[VariableValue, ...]
    optimizer_values: tuple[VariableValue, ...]  # by how much the first step changed them
    diverged_copies: tuple[DivergedCopies, ...]
    training: int = 1

    @property
    def name(self) -> str:
        return step_name(self.training, self.number)


@dataclass(frozen=True)
class GradientComputed(LocatedEvent):
    missing: int  # of them None
    total: int
    disconnected: tuple[int, ...] = ()  # the variables whose gradients are None
    connected: tuple[int, ...] = ()  # and those whose gradients are not
    # Of the disconnected ones, those that lead to what is differentiated only through `stop_gradient`.
    stopped: tuple[int, ...] = ()


@dataclass(frozen=True)
class Operation:
    """An operation of a graph that leads to a loss, with the lines that made it, innermost first."""

    number: int
    kind: str  # TensorFlow's name of it
    location: Stack
    inputs: tuple[
        int, ...
    ]  # the numbers of those from which it is computed, as far as they are reported
    carries: Carries
    whole: bool  # it is computed from what several replicas have
    value: float | None  # of a constant number


@dataclass(frozen=True)
class LossTraced(LocatedEvent):
    """What a loss is computed from, of which a line computes the gradients. The first operation is the loss."""

    operations: tuple[Operation, ...]


@dataclass(frozen=True)
class GradientsApplied(LocatedEvent):
    gradients: int
    missing: int  # of them None
    optimizer: OptimizerState
    made_at: Stack = ()  # where the optimizer was made
    accumulated: int = 1  # gradients that the optimizer adds up for each update
    in_branch: bool = False  # in the graph of a condition or of a loop


@dataclass(frozen=True)
class LearningRateRestored(LocatedEvent):
    """A restore changed the learning rate of an optimizer, which has these variables."""

    before: float
    after: float
    variables: tuple[int, ...]


@dataclass(frozen=True)
class LearningRateRead(LocatedEvent):
    """The program read the variable of a learning rate."""

    number: int
    value: float


@dataclass(frozen=True)
class LearningRateWritten(LocatedEvent):
    """The program, or a callback of Keras's, set the variable of a learning rate."""

    number: int
    value: float


@dataclass(frozen=True)
class MeanReduced(LocatedEvent):
    """A mean over replicas; values and sizes are empty where it was made in a graph, unseen."""

    sizes: tuple[int, ...]  # examples per replica
    values: tuple[float, ...]  # per replica


@dataclass(frozen=True)
class FunctionRetraced(LocatedEvent):
    """Each of these calls of a tf.function traced it again."""

    calls: int
    cause: RetraceCause
    argument: int  # the position of the first argument that contains numbers, or 0
    made_at: Stack = ()  # where the last of these functions was made, if each call had another one


@dataclass(frozen=True)
class PythonValueFrozen(LocatedEvent):
    """A graph was used again after the program had changed what the function read in the trace, on this line."""

    name: str  # as the function reads it, such as self.beta
    function: str
    traced: str  # the number in the graph, or the class of the optimizer
    now: str
    is_optimizer: bool = False


@dataclass(frozen=True)
class NumbersRepeated(LocatedEvent):
    """All replicas draw the same random numbers here."""

    drawer: Owner  # a layer of Keras, or else the program
    shape: tuple[int | None, ...]
    replicas: int
    changes: bool = True  # in each step there are others
    of_generator: bool = False  # the seed comes from a SeedGenerator of Keras


@dataclass(frozen=True)
class CounterFrozen(LocatedEvent):
    """A traced function counts a number up and reads it, on this line; its graph was used again and counted nothing."""

    name: str
    function: str
    now: str


@dataclass(frozen=True)
class RandomNumberFrozen(LocatedEvent):
    """NumPy or Python drew a random number on this line in a trace, and the graph is used more than once."""

    name: str  # of the function, such as np.random.normal
    function: str


@dataclass(frozen=True)
class PartUsed(LocatedEvent):
    """The first time that a step uses such a part, or that a layer with it is built."""

    part: Part


@dataclass(frozen=True)
class TrainableLeftOut(LocatedEvent):
    """`fit` has not trained variables that are trainable, or no step has."""

    numbers: tuple[int, ...]
    is_unfreezing: bool = False  # the line made them trainable, after other steps
    is_ignored: bool = (
        False  # the line was to make them trainable, and Keras has left them as they were
    )


@dataclass(frozen=True)
class DatasetSharded(LocatedEvent):
    """A dataset takes one of several parts of its elements."""

    shards: int
    index: int


@dataclass(frozen=True)
class TrainedInLoop(LocatedEvent):
    """A loop of a graph makes steps: one call of a traced function makes several."""


@dataclass(frozen=True)
class StepsCounted(Event):
    """At the end: how the steps were made. Only calls that train are counted, and only reads between two of them."""

    updates: int  # of the optimizer that made most of them
    eager_runs: int  # of `strategy.run`, outside of graphs
    graph_calls: int
    traces: int  # of these calls
    reads: tuple[HostReads, ...]  # the lines with most of them first
    read: int  # in all
    input_share: float | None  # of the time between steps, in which the program waited for a batch
    held: tuple[DeviceBytes, ...]
    activations: Activations | None  # None: no gradients were computed in a graph


@dataclass(frozen=True)
class RunEager(LocatedEvent):
    """At the end: `strategy.run` trained here outside of graphs."""

    calls: int
    replicas: int
    by_choice: bool  # the program asked TensorFlow to run functions eagerly


@dataclass(frozen=True)
class GeneratorRead(LocatedEvent):
    """At the end: `from_generator` took its elements from a Python generator."""

    elements: int  # between the first and the last step
    steps: int  # in this time
    seconds: float  # in which the generator ran
    share: float  # of this time
    at_once: int  # the largest number of generators that ran at the same time


# Data


@dataclass(frozen=True)
class ReplicaCountRead(LocatedEvent):
    """The program asked for the number of replicas where it can decide about the size of a batch."""


@dataclass(frozen=True)
class DatasetBatched(LocatedEvent):
    size: int


@dataclass(frozen=True)
class DatasetFromFunction(LocatedEvent):
    """The program called `distribute_datasets_from_function`."""


@dataclass(frozen=True)
class BatchTaken(LocatedEvent):
    sizes: tuple[int, ...]  # examples per replica


@dataclass(frozen=True)
class InputShared(LocatedEvent):
    """A training step was given the same tensors for all replicas, and none that is distributed; or such values were made."""

    function: str  # run, or experimental_distribute_values_from_function
    sizes: tuple[int, ...]  # the first dimensions of these tensors


@dataclass(frozen=True)
class DataRanOut(LocatedEvent):
    """The data of `fit`, or of another loop of Keras's, ended: before the steps asked for, or they were of unknown length."""

    steps: int  # that each epoch was to have; 0: nobody asked for a number
    generator: bool = False  # they came from a Python generator, for a model with a strategy


# Models


@dataclass(frozen=True)
class OtherKerasUsed(Event):
    """The program made a layer of another version of Keras than `tf.keras` was to be when it began."""

    version: int


@dataclass(frozen=True)
class ModelCalled(LocatedEvent):
    examples: int  # per replica
    replicas: int
    variables: tuple[int, ...]
    made_at: Stack = ()
    model: int = 0  # its serial number
    trainable: tuple[int, ...] = ()


@dataclass(frozen=True)
class ModelAnswered(LocatedEvent):
    """What a model returned outside of graphs."""

    output: Sample


@dataclass(frozen=True)
class MetricsReported(LocatedEvent):
    """What `fit` returned for one of its first epochs, or what `evaluate` returned."""

    metrics: tuple[Metric, ...]
    compiled_at: Stack


@dataclass(frozen=True)
class NothingTrained(LocatedEvent):
    """`fit` has trained nothing: the model has no trainable variables, although its layers have these as attributes."""

    attributes: tuple[int, ...]


@dataclass(frozen=True)
class ModelCompiled(LocatedEvent):
    """The program compiled a model, or tried to, so that each call of its graph takes this many steps."""

    steps_per_execution: int  # 0 where it is no number, such as "auto"
    variables: tuple[int, ...] = ()  # that the model had
    made_outside: Stack = ()  # where it was made, if that was outside every scope
    definitions: tuple[Definition, ...] = ()


@dataclass(frozen=True)
class FitOverran(LocatedEvent):
    """A `fit` took more steps than `steps_per_epoch` and `epochs` ask for."""

    asked: int
    taken: int
    steps_per_execution: int


@dataclass(frozen=True)
class UsedOptimizerCompiled(LocatedEvent):
    """A model was compiled with an optimizer that has trained others of its variables only."""

    new_variables: tuple[int, ...]


@dataclass(frozen=True)
class OptimizerReplaced(LocatedEvent):
    """A model whose optimizer has taken steps was compiled with a new optimizer."""

    before: OptimizerState
    kind: str  # of the new one, and its learning rate
    learning_rate: str
    continues: bool  # loss, trainable variables and their values are as they were
    variables: tuple[int, ...]  # that it is to train


@dataclass(frozen=True)
class WeightsCopied(LocatedEvent):
    """A model or layer got the weights of another by a copy, or was made as its clone."""

    function: str  # set_weights, clone_model, from_config or deepcopy
    source: tuple[int, ...]
    target: tuple[int, ...]
    equal: bool  # all values are equal then


@dataclass(frozen=True)
class CopyCalled(LocatedEvent):
    """The program called a model or layer that is a copy of another; reported once for each line."""

    target: tuple[int, ...]
    trainable: bool = True  # some of its variables are, or were not frozen
    taped: bool = False  # a tape records the call


@dataclass(frozen=True)
class CalledAlike(Event):
    """The program called a copy with the same tensors as its source."""

    target: tuple[int, ...]


@dataclass(frozen=True)
class CalledApart(Event):
    """A graph calls a copy and its source, and what the first of these calls returns does not lead to the other one."""

    target: tuple[int, ...]


@dataclass(frozen=True)
class CalledInTurn(Event):
    """A graph calls a copy and its source, and what the first of these calls returns leads to the other one."""

    target: tuple[int, ...]


@dataclass(frozen=True)
class CopyMoved(Event):
    """After a step, a copy that began with other values than its source has moved towards it by this share of the way."""

    target: tuple[int, ...]
    share: float


@dataclass(frozen=True)
class OutdatedCopyUsed(LocatedEvent):
    """At the end: a copy was last used here, after `fit` had trained the model that it was copied from, which was not used."""

    function: str
    copied_at: Stack
    target: tuple[int, ...]


@dataclass(frozen=True)
class CopiedToItself(LocatedEvent):
    """A model or layer got the weights that it has: what the program copied from is the same object."""


@dataclass(frozen=True)
class ModelUsed(LocatedEvent):
    """The program predicted, evaluated or saved a model, or called it outside of graphs, after something was trained.

    Reported once for each line.
    """

    variables: tuple[int, ...]
    trainable: tuple[int, ...]
    made_at: Stack


@dataclass(frozen=True)
class UnbuiltModelRead(LocatedEvent):
    """The program asked a model for its variables when it had none yet, or only those of some layers."""

    name: str
    made_at: Stack
    model: int = 0  # its serial number
    variables: tuple[int, ...] = ()  # that it had


# Files


@dataclass(frozen=True)
class Saved(LocatedEvent):
    kind: SaveKind
    path: str
    made_at: Stack  # of the tf.train.Checkpoint
    variables: tuple[int, ...]
    omitted: tuple[OmittedVariable, ...]
    optimizers: tuple[OptimizerState, ...]
    steps: int = 0  # that the program had made
    iterators: int = 0  # over datasets that it had made
    values: tuple[VariableValue, ...] = ()  # of what was saved, in a run that is going to be killed


@dataclass(frozen=True)
class ModelSettings(LocatedEvent):
    """The settings of a model of the program's classes that is saved here, or that is loaded here, as they are at the end."""

    path: str
    loaded: bool
    settings: tuple[Setting, ...]
    before: int = 0  # how many such models this process had saved, of which the first are reported
    compiled: tuple[Setting, ...] = ()  # of losses and metrics of the program's classes


@dataclass(frozen=True)
class LoadedOtherwise(LocatedEvent):
    """At the end: what is loaded of the file that was saved here has the weights of the model and answers otherwise.

    Settings of layers differ; there may be none where nobody knows the reason.
    """

    path: str
    settings: tuple[ChangedSetting, ...]
    are_reason: bool  # with these settings of the saved model it answers as this does
    saved: float  # the entries of the answers that differ most
    loaded: float


@dataclass(frozen=True)
class LoadFailed(LocatedEvent):
    """At the end: the file of a model that was saved here cannot be loaded with the program's classes and functions."""

    path: str
    error: str
    constructor: Frame | None  # of the class that the error names


@dataclass(frozen=True)
class OldValueSaved(LocatedEvent):
    """A tf.train.Checkpoint saved a variable whose attribute the program had set to a number or tensor, on this line.

    The checkpoint holds the variable nevertheless, and nothing has written to it since.
    """

    name: str  # of the attribute
    path: str
    saved: float  # the first entries that differ: of the variable, and of the attribute
    now: float


@dataclass(frozen=True)
class SavedAgain(Event):
    """The program saved to the path of an earlier `Saved` once more."""

    path: str
    steps: int
    iterators: int = 0


@dataclass(frozen=True)
class LookedFor(LocatedEvent):
    """The program, or a callback, asked whether a file exists, or which files are in a folder or match a pattern.

    Or it was going to read a file that does not exist.
    """

    path: str
    lists: bool  # a folder or a pattern


@dataclass(frozen=True)
class FileWritten(LocatedEvent):
    """A file that the program has looked for is opened to be written; reported once."""

    path: str


@dataclass(frozen=True)
class FileMoved(LocatedEvent):
    """A file or a folder gets another name here, or is copied; both paths as they are given."""

    source: str
    target: str
    copied: bool = False


@dataclass(frozen=True)
class OptionRead(Event):
    """An option of the command line or the environment, with its value in this run: given by the user, or a default."""

    name: str  # by which the program reads it
    value: str  # nothing if there is none


@dataclass(frozen=True)
class CallbackState(LocatedEvent):
    """What a callback of Keras remembers when `fit` begins, or after an epoch. No file contains it."""

    callback: str  # the name of its class
    begins: bool  # the state is that before the first epoch of this `fit`
    best: float | None  # not finite, or None, before there is one
    wait: int  # epochs without an improvement
    path: str  # that it saves to
    epoch: int = -1  # that has ended; -1 if `begins`
    monitor: str = ""
    smaller: bool = True  # a smaller value is better
    steps: int = 0  # that the program had made


@dataclass(frozen=True)
class OrderDrawn(LocatedEvent):
    """The order of the examples is drawn at random here: by `shuffle` of a dataset, or by `fit` of arrays."""

    function: str  # shuffle or fit


@dataclass(frozen=True)
class SeedRepeated(LocatedEvent):
    """A function that the program has given a seed is given the same one again: its random numbers begin again."""

    function: str  # such as shuffle or default_rng
    seed: int


@dataclass(frozen=True)
class EpochsLeftOut(LocatedEvent):
    """`fit` has made fewer epochs than it was asked for, or epochs without a step, and no callback had stopped it."""

    asked: int
    made: int  # with at least one step
    first: int  # the number of the epoch that it began with
    of_backup: bool  # it began with the epoch of a backup that an earlier `fit` had restored


@dataclass(frozen=True)
class ExamplesTaken(LocatedEvent):
    """The batches that steps on one line were given, or that one iterator of `fit` yielded, in their order."""

    in_fit: bool
    begins: int  # updates that optimizers had made before
    batches: int
    checksums: tuple[int, ...]  # of the first of these batches


@dataclass(frozen=True)
class Held:
    """A value that a name of the program has: of an object, of a function that runs, or of a module."""

    path: str  # of the file that defines the class or the function; empty for a class of Keras
    holder: str  # its name; empty for a module
    name: str
    value: str


@dataclass(frozen=True)
class ProgramState(Event):
    """What the program has in Python when it saves, or before the next step, as far as it differs from the state before."""

    updates: int  # that optimizers had made
    values: tuple[Held, ...]
    before_step: bool = False  # the first step of the program, or the first one after a save


@dataclass(frozen=True)
class NumbersRead(LocatedEvent):
    """The numbers that a line has read of tensors, in their order."""

    times: int
    numbers: tuple[float, ...]  # the first of them
    reduced_at: Stack  # where the first was computed, if that is a mean over replicas


@dataclass(frozen=True)
class ExamplesSkipped(LocatedEvent):
    """The program leaves out the first elements of a dataset: by `skip`, or it takes them and makes no step."""

    count: int


@dataclass(frozen=True)
class CheckpointRestored(LocatedEvent):
    path: str | None
    made_at: Stack
    variables: tuple[int, ...]  # that the Checkpoint has then
    optimizers: tuple[OptimizerState, ...]  # before the restore
    unmatched: str  # TensorFlow's message if objects got no value from the file


@dataclass(frozen=True)
class CheckpointSought(LocatedEvent):
    """The program asked for the latest checkpoint in a folder."""

    folder: str
    path: str | None
    nearby: tuple[
        str, ...
    ]  # files of weights in the folder or below it, or that begin with its path, if path is None
    variables: tuple[int, ...] = ()  # of the checkpoint of the manager that was asked


@dataclass(frozen=True)
class LoadUnused(LocatedEvent):
    """At the end: nothing has used the model that was loaded here, and another of the same shapes was used."""

    path: str
    name: str  # of the model, and of the one that was used
    used: str


@dataclass(frozen=True)
class VariablesKept(LocatedEvent):
    """A load left variables as they were that are not in the file, or are there in another place or shape."""

    function: str  # restore or load_weights
    path: str
    kept: tuple[int, ...]
    fitting: tuple[
        int, ...
    ]  # those for which the file has values of their shapes, which no variable got
    filled: int  # variables that got values
    other_output: (
        bool  # the file's last variable has another shape, as with another number of classes
    )
    skipped: bool  # the call allows it: skip_mismatch or by_name


@dataclass(frozen=True)
class Loaded(LocatedEvent):
    """Variables got their values from a file, by whatever function."""

    function: str  # restore, load, load_weights, set_weights or assign
    path: str
    variables: tuple[int, ...]
    undistributed: tuple[int, ...]  # those of them that no strategy distributes
    in_scope: bool
    replicas: int  # of the largest strategy that exists
    optimizers: tuple[OptimizerState, ...] = ()  # that had been used; the file may have filled them


# JSON


def plain(value: object) -> object:
    """Returns what JSON can write instead of an enum's member or of a dataclass."""
    if isinstance(value, enum.Enum):
        return value.value
    if dataclasses.is_dataclass(value):
        return vars(value)
    raise TypeError(f"{type(value).__name__} cannot be a part of an event")
