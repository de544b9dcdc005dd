"""What every room may use: refusals, files, reports, the project's settings. It knows neither TensorFlow nor notebooks."""
