"""Layers with state or randomness, and the names of those that have neither."""

from typing import Any

from ..items import Call, How, Item, Kind, Parts, call

FIT = ((How.FIT, Parts.EVEN, (2, 4)),)
STATE = (*FIT, (How.FIT, Parts.EMPTY, (2,)), (How.PREDICT, Parts.EMPTY, (4,)))
RANDOM = ((How.LOOP, Parts.EVEN, (2, 4)),)
BOTH, ONLY_2, ONLY_3 = (2, 3), (2,), (3,)


def trained(name: str, option: str, make: Call, inputs: str, **more: Any) -> Item:
    """A layer between an input and a Dense layer."""
    return Item(Kind.LAYER, name, option, make, more.pop("cells", STATE), inputs, **more)


def random(name: str, inputs: str, keras: tuple[int, ...] = BOTH, **named: Any) -> Item:
    """A layer whose output is random while it trains: rows of one batch get different numbers."""
    make = call(f"layers.{name}", **named)
    return Item(Kind.LAYER, name, "randomness", make, RANDOM, inputs, keras=keras)


STATEFUL = [
    trained("BatchNormalization", "plain", call("layers.BatchNormalization"), "vectors"),
    trained("BatchNormalization", "images", call("layers.BatchNormalization"), "images"),
    trained(
        "BatchNormalization",
        "synchronized",
        call("layers.BatchNormalization", synchronized=True),
        "vectors",
    ),
    trained(
        "BatchNormalization",
        "synchronized renorm",
        call("layers.BatchNormalization", synchronized=True, renorm=True),
        "vectors",
        keras=ONLY_3,
    ),
    trained("LayerNormalization", "plain", call("layers.LayerNormalization"), "vectors"),
    trained("GroupNormalization", "plain", call("layers.GroupNormalization", groups=3), "images"),
    trained("UnitNormalization", "plain", call("layers.UnitNormalization"), "vectors"),
    trained("RMSNormalization", "plain", call("layers.RMSNormalization"), "vectors", keras=ONLY_3),
    trained(
        "SpectralNormalization",
        "plain",
        call("layers.SpectralNormalization", call("layers.Dense", 4)),
        "vectors",
    ),
    trained("Normalization", "adapted", call("own.adapted_normalization"), "vectors"),
    trained("Discretization", "adapted", call("own.adapted_discretization"), "vectors"),
    trained("IntegerLookup", "vocabulary", call("own.integer_lookup"), "ids"),
    trained("Embedding", "plain", call("layers.Embedding", 9, 3), "ids"),
    trained("Embedding", "mask_zero", call("layers.Embedding", 9, 3, mask_zero=True), "ids"),
    trained(
        "ReversibleEmbedding",
        "plain",
        call("layers.ReversibleEmbedding", 9, 3),
        "ids",
        keras=ONLY_3,
    ),
    trained("Dense", "plain", call("layers.Dense", 3), "vectors"),
    trained(
        "Dense",
        "regularizer",
        call("layers.Dense", 3, kernel_regularizer=call("regularizers.L2", 0.1)),
        "vectors",
    ),
    trained(
        "Dense",
        "constraint",
        call("layers.Dense", 3, kernel_constraint=call("constraints.MaxNorm", 0.5)),
        "vectors",
    ),
    trained("EinsumDense", "plain", call("layers.EinsumDense", "ab,bc->ac", 3), "vectors"),
    trained(
        "ActivityRegularization",
        "plain",
        call("layers.ActivityRegularization", l2=0.1),
        "vectors",
    ),
    trained("Conv1D", "plain", call("layers.Conv1D", 2, 3), "sequences"),
    trained("Conv2D", "plain", call("layers.Conv2D", 2, 3), "images"),
    trained("Conv2DTranspose", "plain", call("layers.Conv2DTranspose", 2, 3), "images"),
    trained("Conv3D", "plain", call("layers.Conv3D", 2, 2), "volumes"),
    trained("SeparableConv2D", "plain", call("layers.SeparableConv2D", 2, 3), "images"),
    trained("DepthwiseConv2D", "plain", call("layers.DepthwiseConv2D", 3), "images"),
    trained("ConvLSTM2D", "plain", call("layers.ConvLSTM2D", 2, 3), "films", cells=FIT),
    trained("PReLU", "plain", call("layers.PReLU"), "vectors"),
    trained("SimpleRNN", "plain", call("layers.SimpleRNN", 3), "sequences"),
    trained("LSTM", "plain", call("layers.LSTM", 3), "sequences"),
    trained("GRU", "plain", call("layers.GRU", 3), "sequences"),
    trained(
        "LSTM",
        "stateful",
        call("layers.LSTM", 3, stateful=True),
        "sequences",
        cells=FIT,
        with_=(("fixed_batch", True),),
    ),
    trained(
        "RNN",
        "cells",
        call("layers.RNN", [call("layers.LSTMCell", 2), call("layers.GRUCell", 2)]),
        "sequences",
        cells=FIT,
    ),
    trained(
        "Bidirectional",
        "plain",
        call("layers.Bidirectional", call("layers.LSTM", 2)),
        "sequences",
        cells=FIT,
    ),
    trained(
        "TimeDistributed",
        "plain",
        call("layers.TimeDistributed", call("layers.Dense", 2)),
        "sequences",
    ),
    trained("MultiHeadAttention", "plain", call("own.self_attention"), "sequences"),
    trained("GroupQueryAttention", "plain", call("own.group_attention"), "sequences", keras=ONLY_3),
    trained("Masking", "before LSTM", call("own.masked_lstm"), "sequences"),
    trained("Layer", "add_loss of a sum", call("own.AddsLoss", "sum"), "vectors"),
    trained("Layer", "add_loss of a mean", call("own.AddsLoss", "mean"), "vectors"),
    trained("Layer", "counts rows", call("own.Counter"), "vectors"),
    trained("Layer", "moving average", call("own.MovingAverage"), "vectors"),
    trained("Layer", "add_metric in call", call("own.WithMetric"), "vectors", keras=ONLY_3),
    trained(
        "LocallyConnected1D",
        "plain",
        call("layers.LocallyConnected1D", 2, 3),
        "sequences",
        keras=ONLY_2,
    ),
]
RANDOM_ROWS = [
    random("Dropout", "vectors", rate=0.5),
    random("SpatialDropout1D", "sequences", rate=0.5),
    random("SpatialDropout2D", "images", rate=0.5),
    random("SpatialDropout3D", "volumes", rate=0.5),
    random("AlphaDropout", "vectors", rate=0.5),
    random("GaussianDropout", "vectors", rate=0.5),
    random("GaussianNoise", "vectors", stddev=1.0),
    random("RandomBrightness", "images", factor=0.5),
    random("RandomContrast", "images", factor=0.5),
    random("RandomCrop", "images", height=5, width=5),
    random("RandomFlip", "images"),
    random("RandomRotation", "images", factor=0.5),
    random("RandomTranslation", "images", height_factor=0.5, width_factor=0.5),
    random("RandomZoom", "images", height_factor=0.5),
    random("RandomHeight", "images", ONLY_2, factor=0.5),
    random("RandomWidth", "images", ONLY_2, factor=0.5),
    random("RandomColorDegeneration", "images", ONLY_3, factor=0.5),
    random("RandomColorJitter", "images", ONLY_3, brightness_factor=0.5),
    random("RandomElasticTransform", "images", ONLY_3, factor=0.5),
    random("RandomErasing", "images", ONLY_3),
    random("RandomGaussianBlur", "images", ONLY_3, sigma=1.0),
    random("RandomGrayscale", "images", ONLY_3),
    random("RandomHue", "images", ONLY_3, factor=0.5, value_range=(0, 1)),
    random("RandomInvert", "images", ONLY_3, factor=0.5),
    random("RandomPerspective", "images", ONLY_3, factor=0.5),
    random("RandomPosterization", "images", ONLY_3, factor=4),
    random("RandomSaturation", "images", ONLY_3, factor=0.5),
    random("RandomSharpness", "images", ONLY_3, factor=0.5),
    random("RandomShear", "images", ONLY_3, x_factor=0.5),
]
ITEMS = STATEFUL + RANDOM_ROWS


def because(reason: str, names: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), reason)


NOT_SWEPT = {
    **because(
        "each row's output follows from that row alone, without weights",
        """
        Activation AdaptiveAveragePooling1D AdaptiveAveragePooling2D AdaptiveAveragePooling3D AdaptiveMaxPooling1D
        AdaptiveMaxPooling2D AdaptiveMaxPooling3D Add AdditiveAttention Attention AutoContrast Average AveragePooling1D
        AveragePooling2D AveragePooling3D CategoryEncoding CenterCrop Concatenate
        ContrastLimitedAdaptiveHistogramEqualization Cropping1D Cropping2D Cropping3D Dot ELU Equalization Flatten
        GlobalAveragePooling1D GlobalAveragePooling2D GlobalAveragePooling3D GlobalMaxPooling1D GlobalMaxPooling2D
        GlobalMaxPooling3D HashedCrossing Hashing Identity InputLayer Lambda LeakyReLU MaxNumBoundingBoxes MaxPooling1D
        MaxPooling2D MaxPooling3D Maximum MelSpectrogram Minimum Multiply Permute ReLU RepeatVector Rescaling Reshape
        Resizing STFTSpectrogram Softmax Solarization Subtract ThresholdedReLU UpSampling1D UpSampling2D UpSampling3D
        ZeroPadding1D ZeroPadding2D ZeroPadding3D
        """,
    ),
    **because(
        "another name of a layer",
        """
        AvgPool1D AvgPool2D AvgPool3D Convolution1D Convolution2D Convolution3D Convolution1DTranspose
        Convolution2DTranspose Convolution3DTranspose GlobalAvgPool1D GlobalAvgPool2D GlobalAvgPool3D GlobalMaxPool1D
        GlobalMaxPool2D GlobalMaxPool3D MaxPool1D MaxPool2D MaxPool3D SeparableConvolution1D SeparableConvolution2D
        """,
    ),
    **because(
        "swept as a cell of RNN, or like one",
        "GRUCell LSTMCell SimpleRNNCell StackedRNNCells AbstractRNNCell",
    ),
    **because(
        "the layer of another rank is swept",
        "Conv1DTranspose Conv3DTranspose ConvLSTM1D ConvLSTM3D DepthwiseConv1D SeparableConv1D LocallyConnected2D",
    ),
    **because(
        "holds a model of another library", "FlaxLayer JaxLayer TFSMLayer TorchModuleWrapper"
    ),
    **because(
        "combines other random layers, or rows of a batch, before training",
        "AugMix CutMix MixUp Pipeline RandAugment",
    ),
    **because("reads text as IntegerLookup reads numbers", "StringLookup TextVectorization"),
    "DenseFeatures": "reads the columns of another API",
    "Layer": "the base class; layers of our own are swept",
    "Wrapper": "the base class of Bidirectional and TimeDistributed",
}
