"""A service that keeps orders in PostgreSQL and counts them in Redis, in threads and in tasks."""

import asyncio
import contextlib
import datetime
import decimal
import os
import uuid

import redis
import redis.asyncio
from fastapi import FastAPI, HTTPException
from sqlalchemy import JSON, Numeric, String, create_engine, func, select, text
from sqlalchemy.exc import IntegrityError, ProgrammingError
from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, sessionmaker

URL = os.environ["DATABASE_URL"]
engine = create_engine(URL, pool_size=2, max_overflow=20)
asked_engine = create_async_engine(os.environ["ASKED_URL"], pool_size=2, max_overflow=20)
sessions, asked_sessions = sessionmaker(engine), async_sessionmaker(asked_engine)
counts = redis.Redis.from_url(os.environ["REDIS_URL"])
asked_counts = redis.asyncio.Redis.from_url(os.environ["REDIS_URL"], decode_responses=True)


class Base(DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "orders"
    number: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String, unique=True)
    price: Mapped[decimal.Decimal] = mapped_column(Numeric(10, 2))
    details: Mapped[dict] = mapped_column(JSON)
    at: Mapped[datetime.datetime] = mapped_column(server_default=func.now())
    code: Mapped[uuid.UUID] = mapped_column(default=uuid.uuid4)


@contextlib.asynccontextmanager
async def lifespan(app: FastAPI):
    Base.metadata.create_all(engine)
    yield
    await asked_engine.dispose()
    await asked_counts.aclose()


app = FastAPI(lifespan=lifespan)


def shown(order: Order) -> dict:
    return {
        "number": order.number,
        "name": order.name,
        "price": str(order.price * 2),
        "details": order.details,
        "at": order.at.isoformat(),
        "code": str(order.code),
    }


@app.post("/orders/{name}")
def add(name: str):
    with sessions() as session:
        order = Order(name=name, price=decimal.Decimal("12.50"), details={"items": [name, 1]})
        session.add(order)
        try:
            session.commit()
        except IntegrityError as error:
            raise HTTPException(409, type(error.orig).__name__) from None
        with counts.pipeline() as together:
            together.incr("orders")
            together.hset(f"order:{name}", mapping={"price": "12.50"})
            total, _ = together.execute()
        return {**shown(order), "total": total}


@app.get("/orders/{name}")
async def get(name: str):
    cached, total = await asyncio.gather(
        asked_counts.hgetall(f"order:{name}"), asked_counts.get("orders")
    )
    async with asked_sessions() as session:
        order = await session.scalar(select(Order).where(Order.name == name))
        if order is None:
            raise HTTPException(404, name)
        return {**shown(order), "cached": cached, "orders": total is not None}


@app.post("/archive")
async def archive():
    counted = text("select count(*) from archive")
    async with asked_engine.connect() as connection:
        try:
            await connection.scalar(counted)
        except ProgrammingError:
            await connection.rollback()
            await connection.execute(text("create table archive (name text)"))
            await connection.commit()
        return {"archived": await connection.scalar(counted)}
