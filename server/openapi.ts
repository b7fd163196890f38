// The OpenAPI 3.1 document, made from the routes and their zod schemas. zod writes JSON Schema 2020-12, which 3.1 takes as it is.
import { z } from 'zod'
import type { JsonObject } from '../protocol/json.ts'
import { problemSchema } from './routes/answers.ts'
import type { Answer, Route } from './routes/route.ts'

/** @hono/zod-openapi would do this but for z.json(), a schema that contains itself, on which it runs out of stack. */
export function openApiDocument(routes: readonly Route[], version: string): JsonObject {
  const schemas: JsonObject = {}
  const paths: Record<string, JsonObject> = {}
  for (const definition of routes) {
    const path = definition.path.replace(/:(\w+)/g, '{$1}')
    paths[path] = { ...paths[path], [definition.method]: operation(definition, schemas) }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Paddock',
      version,
      description:
        'Rollouts and rewards for reinforcement learning on tool-using language agents. Events and groups are also pushed over WebSocket at /v1/stream (docs/streaming.md).',
    },
    paths,
    security: [{ bearer: [] }],
    components: { securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } }, schemas },
  }
}

function operation(definition: Route, schemas: JsonObject): JsonObject {
  const { path, tag, summary, description, body, example, answers } = definition
  const failures = {
    description: 'A problem document',
    content: { 'application/problem+json': problemSchema },
  }
  return {
    tags: [tag],
    summary,
    operationId: operationId(definition),
    ...(description !== undefined && { description }),
    parameters: parameters(path, definition.query, schemas),
    ...(body && {
      requestBody: { required: true, content: media(jsonContent(body), schemas, 'input', example) },
    }),
    responses: Object.fromEntries(
      Object.entries<Answer>({ ...answers, default: failures }).map(([status, answer]) => [
        status,
        {
          description: answer.description,
          ...(answer.content && { content: media(answer.content, schemas, 'output') }),
        },
      ]),
    ),
  }
}

/** `POST /v1/batches/:id/lease` is `postBatchesIdLease`; of another trainer's path the tag says whose it is. */
function operationId({ method, path, tag }: Route): string {
  const words = path.split(/[^A-Za-z]+/)
  const named = path.startsWith('/v1/') ? words.slice(2) : [tag, ...words]
  return [method, ...named.map((word) => word.charAt(0).toUpperCase() + word.slice(1))].join('')
}

function parameters(path: string, query: z.ZodObject, schemas: JsonObject): JsonObject[] {
  const inPath = [...path.matchAll(/:(\w+)/g)].map(([, name]) => ({
    name: name!,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }))
  const inQuery = Object.entries(query.shape).map(([name, schema]) => ({
    name,
    in: 'query',
    required: false,
    schema: jsonSchema(schema as z.ZodType, schemas, 'input'),
  }))
  return [...inPath, ...inQuery]
}

function jsonContent(schema: z.ZodType): NonNullable<Answer['content']> {
  return { 'application/json': schema }
}

function media(
  content: NonNullable<Answer['content']>,
  schemas: JsonObject,
  io: 'input' | 'output',
  example?: unknown,
): JsonObject {
  return Object.fromEntries(
    Object.entries(content).map(([type, schema]) => [
      type,
      {
        ...(schema && { schema: jsonSchema(schema, schemas, io) }),
        ...(example !== undefined && { example: example as JsonObject }),
      },
    ]),
  )
}

/** The schema as JSON Schema; what has a name (`meta({ id })`) goes into `schemas` and is referred to. */
function jsonSchema(schema: z.ZodType, schemas: JsonObject, io: 'input' | 'output'): JsonObject {
  const text = JSON.stringify(z.toJSONSchema(schema, { io, unrepresentable: 'any' }))
    // zod numbers the schemas that contain themselves; here that is only z.json().
    .replaceAll('__schema0', 'JsonValue')
    .replaceAll('#/$defs/', '#/components/schemas/')
  const { $schema, $defs, ...rest } = JSON.parse(text) as JsonObject
  Object.assign(schemas, $defs)
  return rest
}
