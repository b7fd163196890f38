// The HTTP request that every dialect sends: a JSON body to a path of the backend.
import type { HttpRequest } from './dialect.ts'

export function jsonRequest(path: string, body: unknown): HttpRequest {
  return {
    path,
    headers: { 'content-type': 'application/json', accept: 'application/json' },
    body: new TextEncoder().encode(JSON.stringify(body)),
  }
}
