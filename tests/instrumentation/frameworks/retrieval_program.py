"""What programs do with Chroma, Qdrant and pgvector: each part prints what it found."""

import asyncio
import os

import chromadb
import psycopg
from qdrant_client import AsyncQdrantClient, QdrantClient, models

TEXTS = {1: "Refunds take 3 days.", 2: "Mugs hold tea.", 3: "Kettles boil."}
VECTORS = {1: [1.0, 0.0], 2: [0.0, 1.0], 3: [0.7, 0.7]}


def chroma() -> object:
    settings = chromadb.Settings(anonymized_telemetry=False)
    docs = chromadb.EphemeralClient(settings).create_collection("docs", embedding_function=None)
    docs.add(
        ids=[f"faq-{one}" for one in TEXTS],
        documents=list(TEXTS.values()),
        embeddings=list(VECTORS.values()),
        metadatas=[{"page": one} for one in TEXTS],
    )
    return docs.query(query_embeddings=[[1.0, 0.1]], n_results=2)["ids"]


SIZE = models.VectorParams(size=2, distance=models.Distance.DOT)
POINTS = [models.PointStruct(id=one, vector=VECTORS[one], payload={"text": TEXTS[one]}) for one in TEXTS]


def qdrant() -> object:
    client = QdrantClient(":memory:")
    client.create_collection("faq", vectors_config=SIZE)
    client.upsert("faq", POINTS)
    return [one.id for one in client.query_points("faq", [1.0, 0.1], limit=2).points]


async def async_qdrant() -> object:
    client = AsyncQdrantClient(":memory:")
    await client.create_collection("later", vectors_config=SIZE)
    await client.upsert("later", POINTS)
    return [one.id for one in (await client.query_points("later", [0.0, 1.0])).points]


def pgvector() -> object:
    """The operator is PostgreSQL's own, for points, which the server has without the extension."""
    with psycopg.connect(os.environ["DATABASE"]) as database:
        database.execute("CREATE TEMP TABLE shelf (id int, text text, place point)")
        for one, (x, y) in VECTORS.items():
            database.execute("INSERT INTO shelf VALUES (%s, %s, point(%s, %s))", (one, TEXTS[one], x, y))
        nearest = "SELECT id, text FROM shelf ORDER BY place <-> point(%s, %s) LIMIT %s"
        return database.execute(nearest, (1.0, 0.1, 2)).fetchall()


for part in (chroma, qdrant, pgvector):
    print(part.__name__, part())
print("async_qdrant", asyncio.run(async_qdrant()))
