# An image in which exercises are graded without a network; TEACHING.md has the commands. Built from a clone:
#     docker build -t clinic-grading -f tools/grading.Dockerfile .
FROM python:3.12-slim
WORKDIR /clinic
COPY pyproject.toml hatch_build.py requirements.lock README.md ./
COPY helpers helpers
COPY notebooks notebooks
RUN pip install --no-cache-dir -c requirements.lock -e '.[notebooks,fast]'
