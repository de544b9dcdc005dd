# The notebooks in a container:
#   docker build -t clinic . && docker run --rm -p 127.0.0.1:8888:8888 clinic
# It is what Binder makes; what is installed again only after a change of the versions comes before what is edited.
FROM docker.io/library/python:3.11-slim
# WORKDIR alone would make the folder root's.
RUN useradd --create-home reader && install --directory --owner=reader /home/reader/clinic
USER reader
WORKDIR /home/reader/clinic
ENV PATH=/home/reader/venv/bin:$PATH
RUN python -m venv /home/reader/venv
COPY --chown=reader binder/requirements.txt binder/requirements.txt
RUN pip install --no-cache-dir -r binder/requirements.txt
COPY --chown=reader . .
RUN binder/postBuild
EXPOSE 8888
ENTRYPOINT ["binder/start"]
CMD ["jupyter", "lab", "--ip=0.0.0.0", "--no-browser", "notebooks/00_start_here.ipynb"]
