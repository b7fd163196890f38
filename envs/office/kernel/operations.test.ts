// What create, update, set, append and delete do to a record (SPEC c.1).
import { describe, expect, test } from 'vitest'
import type { JsonObject } from '../../../protocol/json.ts'
import { callAll } from '../transcripts.testkit.ts'

const article = {
  article_id: 'KB-1',
  title: 'Refunds',
  category: 'billing',
  tags: ['money', 'rules'],
  body: 'b',
  status: 'published',
  version: 3,
  updated_at: '2027-01-01T00:00:00+01:00',
}
const note = {
  note_id: 'NT-1',
  title: 'T',
  created_at: '2027-03-01T00:00:00Z',
  participants: [],
  body: 'b',
  tags: [],
  shared_with: ['ann@acme.example'],
}
const ticket = (status: string): JsonObject => ({
  ticket_id: 'TK-1',
  subject: 's',
  body: 'b',
  priority: 'low',
  status,
  created_at: '2027-03-01T00:00:00Z',
})
const kb = { initial_state: { kb: { article: [article] } } }
const notes = { initial_state: { notes: { note: [note] } } }
const helpdesk = (status: string) => ({ initial_state: { helpdesk: { ticket: [ticket(status)] } } })

test('create gives the full record: given fields, defaults, actor and clock', () => {
  const { result, audit } = callAll({ initial_state: { mail: {} } }, [
    'mail_send',
    { to: ['bob@acme.example'], subject: 's', body: 'b' },
  ])
  const record = {
    message_id: 'ML-N1',
    folder: 'sent',
    from: 'ada.berg@acme.example',
    to: ['bob@acme.example'],
    subject: 's',
    body: 'b',
    sent_at: '2027-03-10T11:00:01+01:00',
    read: true,
    labels: [],
  }
  expect(result).toEqual(record)
  expect(audit.writes).toEqual([
    { entity: 'mail.message', id: 'ML-N1', op: 'create', before: null, after: record },
  ])
})

test('what is given replaces a default', () => {
  const { result } = callAll({ initial_state: { todo: {} } }, [
    'todo_create',
    { title: 'x', priority: 'high', owner: 'bob@acme.example' },
  ])
  expect(result).toMatchObject({ priority: 'high', owner: 'bob@acme.example', status: 'pending' })
})

describe('update', () => {
  test('patches the given fields, stamps the change, and writes down both versions', () => {
    const { result, audit } = callAll(kb, [
      'kb_update_article',
      { article_id: 'KB-1', title: 'Returns' },
    ])
    const after = { ...article, title: 'Returns', updated_at: '2027-03-10T11:00:01+01:00' }
    expect(result).toEqual(after)
    expect(audit.writes).toEqual([
      { entity: 'kb.article', id: 'KB-1', op: 'update', before: article, after },
    ])
  })
  test('writes nothing where every value is equal', () => {
    const same = { article_id: 'KB-1', title: 'Refunds', tags: ['money', 'rules'] }
    const { result, audit, state } = callAll(kb, ['kb_update_article', same])
    expect(result).toEqual(article)
    expect(audit).toMatchObject({ ok: true, writes: [] })
    expect(state.tables['kb.article']).toEqual([article])
  })
  test('of a record that is not there is NOT_FOUND', () => {
    expect(callAll(kb, ['kb_update_article', { article_id: 'KB-2', title: 'x' }]).error).toBe(
      'NOT_FOUND',
    )
  })
})

describe('set', () => {
  const close = ['helpdesk_close_ticket', { ticket_id: 'TK-1', resolution: 'fixed' }] as const
  const escalate = ['helpdesk_escalate_ticket', { ticket_id: 'TK-1', reason: 'angry' }] as const

  test('assigns fixed values and parameters', () => {
    const { result } = callAll(helpdesk('open'), close)
    expect(result).toMatchObject({ status: 'closed', resolution: 'fixed' })
  })
  test('a guard that does not hold is INVALID_STATE', () => {
    expect(callAll(helpdesk('closed'), close).error).toBe('INVALID_STATE')
    expect(callAll(helpdesk('escalated'), escalate).error).toBe('INVALID_STATE')
  })
  test('an optional parameter that is not given assigns nothing', () => {
    const { result } = callAll(helpdesk('pending'), escalate)
    expect(result).toMatchObject({ status: 'escalated', escalation_reason: 'angry' })
    expect(result).not.toHaveProperty('assignee_id')
  })
  test('null takes the field away', () => {
    const asset = {
      asset_id: 'AS-1',
      kind: 'phone',
      model: 'm',
      serial: 's',
      status: 'assigned',
      assigned_to: 'EM-1',
    }
    const { result } = callAll({ initial_state: { assets: { asset: [asset] } } }, [
      'assets_return',
      { asset_id: 'AS-1' },
    ])
    expect(result).toEqual({
      asset_id: 'AS-1',
      kind: 'phone',
      model: 'm',
      serial: 's',
      status: 'in_stock',
    })
  })
})

describe('append', () => {
  test('adds what is missing, each once', () => {
    const recipients = ['ANN@acme.example', 'bob@acme.example', 'bob@acme.example']
    const { result } = callAll(notes, ['notes_share', { note_id: 'NT-1', recipients }])
    expect(result.shared_with).toEqual(['ann@acme.example', 'bob@acme.example'])
  })
  test('writes nothing where nothing is missing', () => {
    const { audit } = callAll(notes, [
      'notes_share',
      { note_id: 'NT-1', recipients: ['ann@acme.example'] },
    ])
    expect(audit).toMatchObject({ ok: true, writes: [] })
  })
})

describe('delete', () => {
  const job = {
    job_id: 'JB-1',
    name: 'n',
    cron: '* * * * *',
    action: 'a',
    enabled: true,
    last_status: 'never',
    tags: [],
  }
  const scheduler = { initial_state: { scheduler: { job: [job] } } }
  const remove = ['scheduler_delete_job', { job_id: 'JB-1' }] as const

  test('removes the record and tells its id', () => {
    const { result, audit, state } = callAll(scheduler, remove)
    expect(result).toEqual({ deleted: 'JB-1' })
    expect(state.tables['scheduler.job']).toEqual([])
    expect(audit.writes).toEqual([
      { entity: 'scheduler.job', id: 'JB-1', op: 'delete', before: job, after: null },
    ])
  })
  test('a second time is NOT_FOUND', () => {
    expect(callAll(scheduler, remove, remove).error).toBe('NOT_FOUND')
  })
})

test('get shows all fields, secrets too, and notes the record as read in full', () => {
  const integration = {
    integration_id: 'IG-1',
    name: 'n',
    provider: 'p',
    status: 'active',
    api_key: 'key_1',
  }
  const { result, audit } = callAll({ initial_state: { config: { integration: [integration] } } }, [
    'config_get_integration',
    { integration_id: 'IG-1' },
  ])
  expect(result).toEqual(integration)
  expect(audit.reads).toEqual([{ entity: 'config.integration', id: 'IG-1', depth: 'full' }])
})
