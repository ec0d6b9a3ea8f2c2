"""A program on Django with PostgreSQL: a model of its own, transactions, cursors of the server."""

import os
from urllib.parse import parse_qs, urlsplit

import django
from django.conf import settings

HOST = parse_qs(urlsplit(os.environ["DATABASE_URL"]).query)["host"][0]
settings.configure(
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": "postgres",
            "USER": "postgres",
            "HOST": HOST,
        }
    },
    USE_TZ=True,
)
django.setup()

from django.db import IntegrityError, connection, models, transaction  # noqa: E402


class Shoe(models.Model):
    name = models.CharField(max_length=20, unique=True)
    price = models.DecimalField(max_digits=8, decimal_places=2, default="9.50")
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        app_label = "shop"


with connection.schema_editor() as editor:
    editor.create_model(Shoe)
for name in ("boot", "clog", "pump"):
    Shoe.objects.create(name=name)
try:
    with transaction.atomic():
        Shoe.objects.create(name="clog")
except IntegrityError as error:
    print(error)
print(list(Shoe.objects.order_by("name").values_list("name", "price", "at")))
print([shoe.name for shoe in Shoe.objects.order_by("name").iterator(chunk_size=2)])
print(Shoe.objects.filter(name__in=["boot", "pump"]).update(price=1))
print(Shoe.objects.filter(name="pump").delete())
with connection.cursor() as cursor:
    cursor.execute("select %s::int, now()", [3])
    print(cursor.fetchone())
