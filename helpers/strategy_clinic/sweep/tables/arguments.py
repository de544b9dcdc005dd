"""A row for each argument of a class of Keras 3 that no other row gives, with a value that is not its default."""

from dataclasses import replace
from typing import Any

from ..items import Call, How, Item, Kind, Parts, Where, call
from . import layers, losses, metrics, optimizers

NORM = call("constraints.MaxNorm", 0.5)
L2 = call("regularizers.L2", 0.1)
NORMAL = call("initializers.RandomNormal", stddev=0.1, seed=3)

CONVOLUTIONS = "Conv1D Conv2D Conv2DTranspose Conv3D"
DEPTHWISE = "DepthwiseConv2D SeparableConv2D"
RECURRENT = "GRU LSTM SimpleRNN"
ATTENTION = "GroupQueryAttention MultiHeadAttention"
NORMALIZATIONS = "BatchNormalization GroupNormalization LayerNormalization"
MOVED = "RandomElasticTransform RandomRotation RandomShear RandomTranslation RandomZoom"

# An argument, its value, and the classes that get it: each is run as the first row of its class.
Row = tuple[str, Any, str]
LAYERS: tuple[Row, ...] = (
    (
        "activation",
        "sigmoid",
        f"{CONVOLUTIONS} {DEPTHWISE} ConvLSTM2D Dense EinsumDense {RECURRENT}",
    ),
    (
        "activity_regularizer",
        L2,
        f"{CONVOLUTIONS} {DEPTHWISE} ConvLSTM2D Dense {RECURRENT} {ATTENTION}",
    ),
    ("alpha_constraint", NORM, "PReLU"),
    ("alpha_initializer", "ones", "PReLU"),
    ("alpha_regularizer", L2, "PReLU"),
    ("attention_axes", (1,), "MultiHeadAttention"),
    ("backward_layer", call("layers.LSTM", 2, go_backwards=True), "Bidirectional"),
    ("beta_constraint", NORM, NORMALIZATIONS),
    ("beta_initializer", "ones", NORMALIZATIONS),
    ("beta_regularizer", L2, NORMALIZATIONS),
    ("bias_axes", "c", "EinsumDense"),
    (
        "bias_constraint",
        NORM,
        f"{CONVOLUTIONS} {DEPTHWISE} ConvLSTM2D Dense {RECURRENT} {ATTENTION}",
    ),
    (
        "bias_initializer",
        "ones",
        f"{CONVOLUTIONS} {DEPTHWISE} ConvLSTM2D Dense {RECURRENT} {ATTENTION}",
    ),
    (
        "bias_regularizer",
        L2,
        f"{CONVOLUTIONS} {DEPTHWISE} ConvLSTM2D Dense {RECURRENT} {ATTENTION}",
    ),
    ("center", False, NORMALIZATIONS),
    ("depth_multiplier", 2, DEPTHWISE),
    ("depthwise_constraint", NORM, DEPTHWISE),
    ("depthwise_initializer", NORMAL, DEPTHWISE),
    ("depthwise_regularizer", L2, DEPTHWISE),
    ("dilation_rate", 2, f"Conv1D Conv2D Conv3D {DEPTHWISE} ConvLSTM2D"),
    ("dropout", 0.5, f"ConvLSTM2D {RECURRENT} {ATTENTION}"),
    ("embeddings_constraint", NORM, "Embedding ReversibleEmbedding"),
    ("embeddings_initializer", NORMAL, "Embedding ReversibleEmbedding"),
    ("embeddings_regularizer", L2, "Embedding ReversibleEmbedding"),
    ("epsilon", 0.1, f"{NORMALIZATIONS} RMSNormalization Discretization"),
    ("flash_attention", False, ATTENTION),
    ("gamma_constraint", NORM, NORMALIZATIONS),
    ("gamma_initializer", NORMAL, NORMALIZATIONS),
    ("gamma_regularizer", L2, NORMALIZATIONS),
    ("go_backwards", True, f"ConvLSTM2D {RECURRENT} RNN"),
    ("groups", 2, "Conv1D Conv3D"),
    ("idf_weights", (1.0, 2.0, 3.0, 4.0), "IntegerLookup"),
    ("invert", True, "Normalization"),
    ("kernel_constraint", NORM, f"{CONVOLUTIONS} ConvLSTM2D EinsumDense {RECURRENT} {ATTENTION}"),
    (
        "kernel_initializer",
        NORMAL,
        f"{CONVOLUTIONS} ConvLSTM2D Dense EinsumDense {RECURRENT} {ATTENTION}",
    ),
    ("kernel_regularizer", L2, f"{CONVOLUTIONS} ConvLSTM2D EinsumDense {RECURRENT} {ATTENTION}"),
    ("l1", 0.1, "ActivityRegularization"),
    ("logit_soft_cap", 1.0, "ReversibleEmbedding"),
    ("lora_rank", 2, "Dense EinsumDense Embedding"),
    ("lora_alpha", 4, "Dense EinsumDense Embedding"),
    ("mask_token", 9, "IntegerLookup"),
    ("mask_value", 1.0, "Masking"),
    ("mask_zero", True, "ReversibleEmbedding"),
    ("max_tokens", 9, "IntegerLookup"),
    ("mean", 1.0, "Normalization"),
    ("merge_mode", "sum", "Bidirectional"),
    ("momentum", 0.5, "BatchNormalization"),
    ("moving_mean_initializer", "ones", "BatchNormalization"),
    ("moving_variance_initializer", "zeros", "BatchNormalization"),
    ("num_oov_indices", 2, "IntegerLookup"),
    ("output_mode", "multi_hot", "IntegerLookup"),
    ("output_mode", "one_hot", "Discretization"),
    ("output_padding", 1, "Conv2DTranspose"),
    ("output_shape", 3, "MultiHeadAttention"),
    ("padding", "same", f"{CONVOLUTIONS} {DEPTHWISE} ConvLSTM2D"),
    ("pointwise_constraint", NORM, "SeparableConv2D"),
    ("pointwise_initializer", NORMAL, "SeparableConv2D"),
    ("pointwise_regularizer", L2, "SeparableConv2D"),
    ("power_iterations", 2, "SpectralNormalization"),
    ("recurrent_activation", "tanh", "ConvLSTM2D GRU LSTM"),
    ("recurrent_constraint", NORM, f"ConvLSTM2D {RECURRENT}"),
    ("recurrent_dropout", 0.5, f"ConvLSTM2D {RECURRENT}"),
    ("recurrent_initializer", NORMAL, f"ConvLSTM2D {RECURRENT}"),
    ("recurrent_regularizer", L2, f"ConvLSTM2D {RECURRENT}"),
    ("renorm", True, "BatchNormalization"),
    ("renorm_clipping", {"rmax": 2.0, "rmin": 0.5, "dmax": 1.0}, "BatchNormalization"),
    ("renorm_momentum", 0.5, "BatchNormalization"),
    ("reset_after", False, "GRU"),
    ("return_sequences", True, f"ConvLSTM2D {RECURRENT} RNN"),
    ("scale", False, NORMALIZATIONS),
    ("shared_axes", (1,), "PReLU"),
    ("sliding_window", 2, ATTENTION),
    ("stateful", True, "ConvLSTM2D GRU RNN SimpleRNN"),
    ("strides", 2, f"{CONVOLUTIONS} {DEPTHWISE} ConvLSTM2D"),
    ("tie_weights", False, "ReversibleEmbedding"),
    ("unit_forget_bias", False, "ConvLSTM2D LSTM"),
    ("unroll", True, f"{RECURRENT} RNN"),
    ("use_bias", False, f"{CONVOLUTIONS} {DEPTHWISE} ConvLSTM2D Dense {RECURRENT} {ATTENTION}"),
    ("use_cudnn", False, "GRU LSTM"),
    ("use_gate", True, ATTENTION),
    ("value_dim", 3, "MultiHeadAttention"),
    ("variance", 2.0, "Normalization"),
    ("zero_output_for_mask", True, "RNN"),
)
RANDOM: tuple[Row, ...] = (
    ("contrast_factor", 0.5, "RandomColorJitter"),
    ("factor", 0.9, "RandomErasing RandomGaussianBlur RandomGrayscale"),
    ("fill_mode", "nearest", MOVED),
    ("fill_value", 0.5, f"{MOVED} RandomErasing RandomPerspective"),
    ("hue_factor", 0.5, "RandomColorJitter"),
    ("interpolation", "nearest", f"{MOVED} RandomPerspective"),
    ("kernel_size", 5, "RandomGaussianBlur"),
    ("mode", "horizontal", "RandomFlip"),
    ("noise_shape", (None, 1), "AlphaDropout Dropout"),
    ("saturation_factor", 0.5, "RandomColorJitter"),
    ("scale", 0.5, "RandomElasticTransform RandomPerspective"),
    ("scale", (0.1, 0.5), "RandomErasing"),
    (
        "seed",
        1,
        f"AlphaDropout Dropout GaussianDropout GaussianNoise {MOVED} RandomBrightness RandomColorDegeneration "
        "RandomColorJitter RandomContrast RandomCrop RandomErasing RandomFlip RandomGaussianBlur RandomGrayscale "
        "RandomHue RandomInvert RandomPerspective RandomPosterization RandomSaturation RandomSharpness "
        "SpatialDropout1D SpatialDropout2D SpatialDropout3D",
    ),
    (
        "value_range",
        (0, 1),
        "RandomBrightness RandomColorDegeneration RandomColorJitter RandomContrast RandomElasticTransform "
        "RandomErasing RandomGaussianBlur RandomInvert RandomPosterization RandomSaturation RandomSharpness",
    ),
    ("width_factor", 0.5, "RandomZoom"),
    ("y_factor", 0.5, "RandomShear"),
)
CROSSENTROPIES = "BinaryCrossentropy BinaryFocalCrossentropy CategoricalCrossentropy CategoricalFocalCrossentropy"
LOSSES: tuple[Row, ...] = (
    ("alpha", 0.4, "BinaryFocalCrossentropy CategoricalFocalCrossentropy Tversky"),
    ("apply_class_balancing", True, "BinaryFocalCrossentropy"),
    ("axis", (1,), "Dice Tversky"),
    ("beta", 0.4, "Tversky"),
    ("delta", 0.5, "Huber"),
    ("dtype", "float64", " ".join(losses.CLASSES)),
    ("from_logits", True, f"{CROSSENTROPIES} SparseCategoricalCrossentropy"),
    ("gamma", 1.5, "BinaryFocalCrossentropy CategoricalFocalCrossentropy Circle"),
    ("ignore_class", 1, "SparseCategoricalCrossentropy"),
    ("label_smoothing", 0.1, CROSSENTROPIES),
    ("margin", 0.2, "Circle"),
    ("q", 0.7, "CategoricalGeneralizedCrossEntropy"),
    ("reduction", "sum", " ".join(each for each in losses.CLASSES if each not in losses.REDUCED)),
    (
        "reduction",
        "mean_with_sample_weight",
        " ".join(each for each in losses.CLASSES if each != "MeanSquaredError"),
    ),
    ("remove_diagonal", False, "Circle"),
)
IOU = "IoU MeanIoU OneHotIoU OneHotMeanIoU"
COUNTS_AT = "FalseNegatives FalsePositives TrueNegatives TruePositives Precision Recall AUC"
AT = "PrecisionAtRecall RecallAtPrecision SensitivityAtSpecificity SpecificityAtSensitivity"
METRICS: tuple[Row, ...] = (
    ("average", "macro", "F1Score FBetaScore"),
    ("beta", 2.0, "FBetaScore"),
    ("class_aggregation", "variance_weighted_average", "R2Score"),
    ("class_id", 1, f"Precision Recall {AT}"),
    ("curve", "PR", "AUC"),
    (
        "dtype",
        "float64",
        " ".join([*metrics.CLASSES, "Mean", "Sum"]).replace("MeanRelativeError ", ""),
    ),
    (
        "from_logits",
        True,
        "AUC BinaryCrossentropy CategoricalCrossentropy SparseCategoricalCrossentropy",
    ),
    ("from_sorted_ids", True, "SparseTopKCategoricalAccuracy"),
    ("ignore_class", 1, f"{IOU} SparseCategoricalCrossentropy"),
    ("label_smoothing", 0.1, "BinaryCrossentropy CategoricalCrossentropy"),
    ("label_weights", (0.2, 0.3, 0.5), "AUC"),
    ("multi_label", True, "AUC"),
    ("num_labels", 3, "AUC"),
    ("num_regressors", 1, "R2Score"),
    ("num_thresholds", 20, f"AUC {AT}"),
    ("summation_method", "majoring", "AUC"),
    ("threshold", 0.3, "BinaryAccuracy BinaryIoU F1Score FBetaScore"),
    ("thresholds", [0.3, 0.6], COUNTS_AT),
    ("top_k", 2, "Precision Recall"),
)
EVERY_OPTIMIZER = " ".join(optimizers.CLASSES)
BETAS = "Adam AdamW Adamax Lamb Lion Nadam ScheduleFreeAdamW"
OPTIMIZERS: tuple[Row, ...] = (
    ("adam_beta_1", 0.5, "Muon"),
    ("adam_beta_2", 0.9, "Muon"),
    ("adam_lr_ratio", 0.5, "Muon"),
    ("adam_weight_decay", 0.1, "Muon"),
    ("amsgrad", True, "Adam AdamW"),
    ("beta", 0.1, "Ftrl"),
    ("beta_1", 0.5, BETAS),
    ("beta_2", 0.9, BETAS),
    ("beta_2_decay", -0.5, "Adafactor"),
    ("centered", True, "RMSprop"),
    ("clip_threshold", 0.1, "Adafactor"),
    ("ema_overwrite_frequency", 2, EVERY_OPTIMIZER),
    (
        "epsilon",
        0.01,
        "Adadelta Adagrad Adam AdamW Adamax Lamb Muon Nadam RMSprop ScheduleFreeAdamW",
    ),
    ("epsilon_1", 1e-3, "Adafactor"),
    ("epsilon_2", 0.1, "Adafactor"),
    ("exclude_embeddings", False, "Muon"),
    ("exclude_layers", ("dense",), "Muon"),
    ("initial_accumulator_value", 0.5, "Adagrad Ftrl"),
    ("l1_regularization_strength", 0.1, "Ftrl"),
    ("l2_regularization_strength", 0.1, "Ftrl"),
    ("l2_shrinkage_regularization_strength", 0.1, "Ftrl"),
    ("learning_rate_power", -0.8, "Ftrl"),
    ("loss_scale_factor", 8.0, EVERY_OPTIMIZER),
    ("momentum", 0.5, "Muon"),
    ("muon_a", 3.0, "Muon"),
    ("muon_b", -4.0, "Muon"),
    ("muon_c", 2.0, "Muon"),
    ("nesterov", True, "SGD"),
    ("nesterov", False, "Muon"),
    ("ns_steps", 2, "Muon"),
    ("relative_step", False, "Adafactor"),
    ("rho", 0.5, "Adadelta RMSprop"),
    ("rms_rate", 0.5, "Muon"),
    ("warmup_steps", 2, "ScheduleFreeAdamW"),
)

# What else must be given where an argument is.
NEEDS: dict[str, dict[str, Any]] = {
    "ema_overwrite_frequency": {"use_ema": True, "ema_momentum": 0.5},
    "idf_weights": {"output_mode": "tf_idf"},
    "label_weights": {"multi_label": True},
    "lora_alpha": {"lora_rank": 2},
    "mean": {"variance": 2.0},
    "num_labels": {"multi_label": True},
    "output_padding": {"strides": 2},
    "renorm_clipping": {"renorm": True},
    "renorm_momentum": {"renorm": True},
    "variance": {"mean": 1.0},
}

# Arguments that no row gives, of all classes or of one.
NOT_SWEPT = {
    "axis": "chooses among the axes of one example",
    "data_format": "a CPU has no convolution of channels_first",
    "dtype": "float16 and bfloat16 are swept in fit, float64 in losses and metrics",
    "gptq_unpacked_column_size": "of quantized layers, which are not trained",
    "name": "is a name",
    "quantization_config": "of quantized layers, which are not trained",
    "return_state": "returns more tensors of the same values",
    "reverse_dtype": "float16 and bfloat16 are swept in fit",
    "verbose": "prints",
    "sparse": "sparse tensors are swept in fit",
    "sparse_y_pred": "another form of the same labels",
    "sparse_y_true": "another form of the same labels",
    "weights": "set_weights gives values, too",
    "CSVLogger.separator": "is a character of the file",
    "Conv2DTranspose.dilation_rate": "a CPU has no transposed convolution with it",
    "Conv2D.groups": "swept for Conv1D and Conv3D",
    "Discretization.bin_boundaries": "adapt computes them",
    "Discretization.num_bins": "given by the function that makes the layer",
    "EinsumDense.bias_constraint": "swept for other layers",
    "EinsumDense.bias_initializer": "swept for other layers",
    "EinsumDense.bias_regularizer": "swept for other layers",
    "IntegerLookup.vocabulary": "given by the function that makes the layer",
    "IntegerLookup.invert": "returns ids, on which nothing can be trained",
    "IntegerLookup.oov_method": "is of one example alone",
    "IntegerLookup.oov_token": "is of one example alone",
    "IntegerLookup.pad_to_max_tokens": "is of one example alone",
    "IntegerLookup.salt": "is of one example alone",
    "IntegerLookup.vocabulary_dtype": "is of one example alone",
    **{
        f"LambdaCallback.{name}": "called as on_train_batch_end is"
        for name in (
            "on_epoch_begin",
            "on_epoch_end",
            "on_train_begin",
            "on_train_end",
            "on_train_batch_begin",
        )
    },
    "Loss.dtype": "swept for each loss",
    "Loss.reduction": "swept for each loss",
    "MultiOptimizer.loss_scale_factor": "of the optimizers that it holds",
    **{
        f"{name}.seed": "nothing is drawn without dropout"
        for name in (*f"ConvLSTM2D {RECURRENT} {ATTENTION}".split(),)
    },
}

# How these rows are run, by kind.
TRAINED: tuple[Where, ...] = ((How.FIT, Parts.EVEN, (2,)), (How.FIT, Parts.UNEVEN, (2,)))
CELLS: dict[Kind, tuple[Where, ...]] = {
    Kind.LAYER: TRAINED,
    Kind.LOSS: (*TRAINED, (How.EVALUATE, Parts.UNEVEN, (2,))),
    Kind.METRIC: ((How.EVALUATE, Parts.UNEVEN, (2,)), (How.EVALUATE, Parts.EMPTY, (4,))),
    Kind.OPTIMIZER: ((How.FIT, Parts.EVEN, (2,)), (How.LOOP, Parts.UNEVEN, (2,))),
}


def with_argument(item: Item, argument: str, value: Any) -> Item:
    """Returns the row of a class with one more argument; one that draws random numbers is run as before."""
    assert isinstance(item.make, Call)
    cells = layers.RANDOM if item.option == "randomness" else looped(item) or CELLS[item.kind]
    make = item.make.but(**NEEDS.get(argument, {}) | {argument: value})
    if argument == "stateful":  # which needs batches of one size
        cells, item = layers.FIT, replace(item, with_=(("fixed_batch", True),))
    return replace(item, option=f"{argument}={value}", make=make, cells=cells, keras=(3,))


def looped(item: Item) -> tuple[Where, ...]:
    """Returns the cells of a metric of values alone, which only a loop can update."""
    return ((How.LOOP, Parts.UNEVEN, (2,)),) if item.options.get("values") else ()


def rows_of(listed: tuple[Row, ...], items: list[Item]) -> list[Item]:
    first: dict[str, Item] = {}
    for item in items:
        first.setdefault(item.name, item)
    return [
        with_argument(first[name], argument, value)
        for argument, value, names in listed
        for name in names.split()
    ]


ITEMS = [
    *rows_of(LAYERS, layers.STATEFUL),
    *rows_of(RANDOM, layers.RANDOM_ROWS),
    *rows_of(LOSSES, losses.ITEMS),
    *rows_of(METRICS, metrics.ITEMS),
    *rows_of(OPTIMIZERS, optimizers.ITEMS),
]
