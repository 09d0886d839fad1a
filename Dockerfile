# docker build -t numbench .
# docker run --rm -v "$PWD/results:/home/numbench/results" -e OPENAI_API_KEY numbench run --model MODEL
FROM python:3.12-slim
COPY pyproject.toml README.md LICENSE NOTICE /src/
COPY bench /src/bench
COPY prompts /src/prompts
COPY datasets /src/datasets
COPY results/published /src/results/published
RUN pip install --no-cache-dir /src && rm -rf /src \
 && useradd --create-home numbench && install -d -o numbench /home/numbench/results
USER numbench
WORKDIR /home/numbench
VOLUME /home/numbench/results
ENTRYPOINT ["numbench"]
CMD ["--help"]
