"""Objects of the query API, as its OpenAPI description names them."""
