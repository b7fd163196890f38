// The config service: integrations and credentials.
import { digest } from '../../../protocol/json.ts'
import {
  date,
  datetime,
  defineService,
  email,
  id,
  num,
  oneOf,
  opt,
  ref,
  secret,
  str,
  text,
} from '../catalogue/declare.ts'
import { done, type Outcome } from '../kernel/outcome.ts'
import type { Args, Transaction } from '../kernel/transaction.ts'

const status = oneOf('active', 'degraded', 'expired', 'disabled')

export const config = defineService({
  name: 'config',
  title: 'Integrations and credentials',
  entities: {
    integration: {
      id: 'integration_id',
      prefix: 'IG',
      fields: {
        integration_id: id,
        name: str,
        provider: str,
        status,
        api_key: secret,
        last_verified: opt(date),
        error_rate: opt(num),
        notes: opt(text),
      },
      summary: ['integration_id', 'name', 'provider', 'status', 'last_verified', 'error_rate'],
    },
    notification: {
      id: 'notification_id',
      prefix: 'NF',
      fields: {
        notification_id: id,
        to: email,
        subject: str,
        body: text,
        created_at: datetime,
      },
    },
  },
  tools: {
    config_list_integrations: {
      op: 'list',
      entity: 'integration',
      params: { status: opt(status) },
    },
    config_get_integration: { op: 'get', entity: 'integration' },
    config_update_integration: {
      op: 'update',
      entity: 'integration',
      params: { status: opt(status), notes: opt(text) },
    },
    config_rotate_key: {
      op: 'custom',
      entity: 'integration',
      params: { integration_id: ref('config.integration') },
      write: true,
      about:
        'Replaces the key of an integration and tells the last four characters of the new one.',
      handler: rotateKey,
    },
    config_notify: {
      op: 'create',
      entity: 'notification',
      params: { to: email, subject: str, body: text },
    },
  },
})

/** The new key follows from seed, id and number of the call, so that a replay makes the same one. */
function rotateKey(transaction: Transaction, args: Args): Outcome {
  const integrationId = args.integration_id as string
  const api_key = `rk_${digest([transaction.seed, integrationId, transaction.seq], 32)}`
  transaction.change('config.integration', integrationId, { api_key })
  return done({ integration_id: integrationId, key_last4: api_key.slice(-4) })
}
