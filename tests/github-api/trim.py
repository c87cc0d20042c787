#!/usr/bin/env python3
"""Cut GitHub's API description down to the endpoints of endpoints.txt.

    npm pack @octokit/openapi@VERSION && tar xzf octokit-openapi-VERSION.tgz
    trim.py package/package.json package/generated/api.github.com.json > github.json

The result is no OpenAPI any more: for each endpoint it holds the parameters, the schema of the
body and that of each answer, as JSON Schema 2020-12. One endpoint or schema stands on a line, so
that an update can be read as a difference.
"""

import json
import pathlib
import sys

SCHEMAS = "urn:github-api#/schemas/"
# What a validator has no use for.
NO_RULES = {
    "deprecated", "description", "discriminator", "example", "examples", "externalDocs",
    "readOnly", "summary", "title", "writeOnly", "xml",
}


class Trim:
    def __init__(self, openapi):
        self.components = openapi["components"]
        self.paths = openapi["paths"]
        self.schemas = {}

    def resolved(self, node):
        """The node, or what its reference points to."""
        while "$ref" in node:
            group, name = node["$ref"].split("/")[-2:]
            node = self.components[group][name]
        return node

    def schema(self, node):
        """A schema of OpenAPI 3.0 as JSON Schema; what it refers to is taken in as well."""
        if "$ref" in node:
            name = node["$ref"].rsplit("/", 1)[1]
            if name not in self.schemas:
                self.schemas[name] = None  # Schemas refer to themselves.
                self.schemas[name] = self.schema(self.components["schemas"][name])
            return {"$ref": SCHEMAS + name}
        made = {}
        for key, value in node.items():
            if key in NO_RULES or key.startswith("x-") or key == "nullable":
                continue
            if key == "properties":
                value = {name: self.schema(inner) for name, inner in value.items()}
            elif key in ("items", "not", "additionalProperties") and isinstance(value, dict):
                value = self.schema(value)
            elif key in ("allOf", "anyOf", "oneOf"):
                value = [self.schema(inner) for inner in value]
            made[key] = value
        return self.or_null(made) if node.get("nullable") else made

    @staticmethod
    def or_null(schema):
        if None not in schema.get("enum", [None]):
            schema["enum"] = schema["enum"] + [None]
        if isinstance(schema.get("type"), str):
            schema["type"] = [schema["type"], "null"]
            return schema
        return {"anyOf": [{"type": "null"}, schema]}

    def content(self, node):
        """The schema of a body's JSON; none when it has no JSON."""
        json_form = node.get("content", {}).get("application/json")
        return self.schema(json_form["schema"]) if json_form else None

    def endpoint(self, line):
        method, path = line.split()
        item = self.paths[path]
        operation = item[method.lower()]
        declared = map(self.resolved, item.get("parameters", []) + operation.get("parameters", []))
        body = self.resolved(operation.get("requestBody", {}))
        return {
            "parameters": [
                {
                    "name": parameter["name"],
                    "in": parameter["in"],
                    "required": parameter.get("required", False),
                    "schema": self.schema(parameter["schema"]),
                }
                for parameter in declared
            ],
            "body": self.content(body),
            "body_required": body.get("required", False),
            "answers": {
                status: self.content(self.resolved(answer))
                for status, answer in operation["responses"].items()
            },
        }


def main():
    package, openapi = (json.loads(pathlib.Path(name).read_text()) for name in sys.argv[1:])
    wanted = pathlib.Path(__file__).with_name("endpoints.txt").read_text().split("\n")
    trim = Trim(openapi)
    endpoints = {line: trim.endpoint(line) for line in wanted if line}

    def lines(entries):
        return ",\n".join(f"{json.dumps(name)}: {json.dumps(entries[name])}" for name in sorted(entries))

    print(f'{{"source": {json.dumps(package["name"] + "@" + package["version"])},')
    print(f'"description": {json.dumps(openapi["info"]["version"])},')
    print(f'"endpoints": {{\n{lines(endpoints)}\n}},\n"schemas": {{\n{lines(trim.schemas)}\n}}}}')


main()
