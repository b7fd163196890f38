// One connection of /v1/stream: what the client says, and the events and groups that are pushed within its credit.
import { z } from 'zod'
import { PaddockError } from '../protocol/errors.ts'
import { ackRequestSchema } from '../protocol/group.ts'
import { parseJsonBody } from '../protocol/json-body.ts'
import { requireRole } from './access.ts'
import type { Outbox } from './outbox.ts'
import { invalidRequest, problemOf } from './problems.ts'
import { checkSchema } from './schema-issues.ts'
import type { Service } from './service.ts'
import type { Role } from './settings.ts'
import {
  createSubscription,
  type Subscribe,
  type Subscription,
  subscribeSchema,
} from './subscription.ts'

const messageSchema = z.discriminatedUnion('type', [
  subscribeSchema,
  z.strictObject({
    type: z.literal('credit'),
    events: z.int().min(0).max(1_000_000).default(0),
    groups: z.int().min(0).max(1024).default(0),
  }),
  z.strictObject({ type: z.literal('ack'), ...ackRequestSchema.shape }),
  z.strictObject({ type: z.literal('nack'), ...ackRequestSchema.shape }),
])
type Message = z.output<typeof messageSchema>

export interface StreamSession {
  /** Handles one message after those before it. Never rejects. */
  receive(bytes: Uint8Array): Promise<void>
  /** Ends what is pushed; a lease that waits is given up. */
  end(): void
}

export interface StreamSessionOptions {
  service: Service
  roles: readonly Role[]
  outbox: Outbox
  /** Closes the connection: 1008 where a message cannot be read. */
  close(code: number, reason: string): void
  onFault?(error: unknown): void
}

export function createStreamSession(options: StreamSessionOptions): StreamSession {
  const { service, roles, outbox, close } = options
  let subscription: Subscription | null = null
  let last: Promise<void> = Promise.resolve()

  async function take(bytes: Uint8Array): Promise<void> {
    let message: Message
    try {
      message = readMessage(bytes)
    } catch (error) {
      await tell(error)
      // Whatever follows a message that cannot be read would be guesswork.
      return close(1008, 'a message could not be read')
    }
    await handle(message).catch(tell)
  }

  async function handle(message: Message): Promise<void> {
    switch (message.type) {
      case 'subscribe':
        return subscribe(message)
      case 'credit':
        return current().grant(message)
      case 'ack':
      case 'nack': {
        requireRole(roles, ['lease'])
        const { type, ...request } = message
        const groups = await service[type](current().batch, request)
        return outbox.send(JSON.stringify({ type, groups }))
      }
    }
  }

  function subscribe(message: Subscribe): void {
    if (subscription && !subscription.ended)
      throw new PaddockError(
        'invalid_request',
        `this connection follows batch ${subscription.batch}: open another one for ${message.batch}`,
      )
    requireRole(roles, message.groups ? ['lease'] : ['submit', 'lease'])
    if (!message.events && !message.groups)
      throw new PaddockError('invalid_request', 'expected events, groups, or both to be true')
    subscription = createSubscription(service, message, outbox, tell)
  }

  function current(): Subscription {
    if (subscription) return subscription
    throw new PaddockError('invalid_request', 'expected a message of type subscribe first')
  }

  function tell(error: unknown): Promise<void> {
    const problem = problemOf(error)
    if (problem.code === 'internal') options.onFault?.(error)
    return outbox.send(JSON.stringify({ ...problem, type: 'error' }))
  }

  return {
    receive(bytes) {
      last = last.then(() => take(bytes))
      return last
    },
    end() {
      subscription?.end()
    },
  }
}

/** Throws PaddockError `malformed_json` or `invalid_request`. */
function readMessage(bytes: Uint8Array): Message {
  const checked = checkSchema(messageSchema, parseJsonBody(bytes))
  if (!checked.ok) throw invalidRequest(checked.issues)
  return checked.value
}
